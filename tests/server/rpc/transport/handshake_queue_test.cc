#include "server/rpc/transport/handshake_queue.h"

#include <string>
#include <vector>

#include "core/thread/mutex.h"
#include "tests/server/support/gate.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// Records the steps that ran and those that were dropped, by name. The first step of all waits, so
// that the others queue up behind it.
class HandshakeQueueTest : public ::testing::Test {
 protected:
  HandshakeQueueTest() {
    queue_.Add("first", {[this] {
                           begun_.Open();
                           gate_.Wait();
                         },
                         [] { FAIL(); }});
    begun_.Wait();
  }
  void Add(const std::string& host, const std::string& name) {
    queue_.Add(host, {[this, name] {
                        MutexLock lock(&mutex_);
                        ran_.push_back(name);
                        changed_.NotifyAll();
                      },
                      [this, name] { dropped_.push_back(name); }});
  }
  // Lets the steps run, and returns them when `count` of them have run.
  std::vector<std::string> Run(size_t count) {
    gate_.Open();
    MutexLock lock(&mutex_);
    while (ran_.size() < count) changed_.Wait(&mutex_);
    return ran_;
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> ran_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> dropped_;
  Gate begun_;
  Gate gate_;
  HandshakeQueue queue_{6};
};

TEST_F(HandshakeQueueTest, HostsTakeTurns) {
  for (const char* name : {"a1", "a2", "a3"}) Add("a", name);
  Add("b", "b1");
  Add("c", "c1");
  EXPECT_THAT(Run(5), ElementsAre("a1", "b1", "c1", "a2", "a3"));
}

TEST_F(HandshakeQueueTest, TheNewestOfTheLongestIsDroppedWhoeverComes) {
  for (const char* name : {"a1", "a2", "a3", "a4", "a5"}) Add("a", name);
  Add("b", "b1");
  EXPECT_THAT(dropped_, ElementsAre());
  Add("b", "b2");
  EXPECT_THAT(dropped_, ElementsAre("a5"));
  Add("a", "a6");
  EXPECT_THAT(dropped_, ElementsAre("a5", "a6"));
  Add("c", "c1");
  EXPECT_THAT(dropped_, ElementsAre("a5", "a6", "a4"));
  EXPECT_THAT(Run(6), ElementsAre("a1", "b1", "c1", "a2", "b2", "a3"));
}

TEST(HandshakeQueueEndTest, StepsThatWaitAreDropped) {
  Gate begun;
  Gate gate;
  int dropped = 0;
  {
    HandshakeQueue queue(10);
    queue.Add("a", {[&] {
                      begun.Open();
                      gate.Wait();
                    },
                    [] { FAIL(); }});
    begun.Wait();
    for (int i = 0; i < 3; ++i) queue.Add("a", {[] {}, [&] { ++dropped; }});
    gate.Open();
  }
  EXPECT_LE(dropped, 3);
}

}  // namespace
}  // namespace phimap::testing
