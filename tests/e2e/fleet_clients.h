// What the clients of linearizable_test and fleet_history_test share: connections, the aliases that
// they move and read, the revisions that they know, and a gate that keeps them out while the test
// changes the world.
#ifndef PHIMAP_TESTS_E2E_FLEET_CLIENTS_H_
#define PHIMAP_TESTS_E2E_FLEET_CLIENTS_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/history.h"

namespace phimap::e2e {

// A connection of its own, which is made again soon after the server was away.
inline std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
  // Also the time that one attempt to connect has, on a machine that may have much else to do.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// An alias, which is moved to each version at most once, and what clients saw of it.
struct Register {
  Register(int of_mapping, std::string its_alias, int64_t its_initial, Instant its_begin)
      : mapping(of_mapping), alias(std::move(its_alias)), initial(its_initial), begin(its_begin) {}

  std::string name() const { return absl::StrCat("m", mapping); }

  const int mapping;
  const std::string alias;
  const int64_t initial;
  const Instant begin;
  std::atomic<int64_t> next{1};
  std::mutex mutex;
  std::vector<Write> writes;
  std::vector<Read> reads;
  std::vector<Read> plain_reads;
  // Reads of clients that require what they themselves were told, as a Client does. Their `server`
  // is the client.
  std::vector<Read> session_reads;
};

// The revision that an answer tells, "" if none.
inline std::string RevisionOf(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto told = trailers.find("phimap-revision");
  return told == trailers.end() ? "" : std::string(told->second.data(), told->second.size());
}
inline int64_t NumberOf(const std::string& revision) {
  int64_t number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(revision.substr(revision.rfind(':') + 1), &number)) << revision;
  return number;
}

// The revision of the newest answer, which all later calls require.
class NewestRevision {
 public:
  // Returns false if the answer tells none.
  bool Note(const grpc::ClientContext& context) {
    const std::string revision = RevisionOf(context);
    if (revision.empty()) return false;
    const int64_t at = NumberOf(revision);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (at > number_) {
      number_ = at;
      revision_ = revision;
    }
    return true;
  }
  std::string Get() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return revision_;
  }
  // Begins with what another knows: answers tell a revision only to those who require one.
  void BeginWith(const NewestRevision& other) {
    if (!Get().empty()) return;
    const std::scoped_lock lock(mutex_, other.mutex_);
    number_ = other.number_;
    revision_ = other.revision_;
  }
  void Forget() {
    const std::lock_guard<std::mutex> lock(mutex_);
    number_ = 0;
    revision_.clear();
  }

 private:
  mutable std::mutex mutex_;
  int64_t number_ = 0;
  std::string revision_;
};

// Lets clients work, or keeps them out.
class Gate {
 public:
  void Enter() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !closed_; });
    ++inside_;
  }
  void Leave() {
    const std::lock_guard<std::mutex> lock(mutex_);
    --inside_;
    changed_.notify_all();
  }

  // Closes a gate and waits until nobody is inside any more. Opens it again at the end of its
  // scope, so that a check that fails in between leaves nobody waiting.
  class Closed {
   public:
    explicit Closed(Gate& gate) : gate_(gate) {
      std::unique_lock<std::mutex> lock(gate_.mutex_);
      gate_.closed_ = true;
      gate_.changed_.wait(lock, [this] { return gate_.inside_ == 0; });
    }
    ~Closed() {
      const std::lock_guard<std::mutex> lock(gate_.mutex_);
      gate_.closed_ = false;
      gate_.changed_.notify_all();
    }
    Closed(const Closed&) = delete;
    Closed& operator=(const Closed&) = delete;

   private:
    Gate& gate_;
  };

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  int inside_ = 0;
};

}  // namespace phimap::e2e

#endif  // PHIMAP_TESTS_E2E_FLEET_CLIENTS_H_
