#include "server/rpc/transport/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/thread/steady_time.h"
#include "gtest/gtest.h"
#include "tests/support/threads.h"

namespace phimap::testing {
namespace {

// A file that stays readable until the test says otherwise.
class ReadyFile final : public Pollable {
 public:
  explicit ReadyFile(EventLoop& loop) : loop_(loop), fd_(eventfd(1, EFD_NONBLOCK)) {
    EXPECT_TRUE(loop_.Add(fd_, EPOLLIN, *this));
  }
  ~ReadyFile() override {
    loop_.Remove(fd_, *this);
    close(fd_);
  }
  void OnOutOfMemory() override { ++out_of_memory; }
  void OnReady(uint32_t events) override {
    (events == 0 ? ended_turns : ready)++;
    if (then) then(events);
  }
  int ready = 0;
  int ended_turns = 0;
  int out_of_memory = 0;
  std::function<void(uint32_t)> then;

 private:
  EventLoop& loop_;
  const int fd_;
};

struct StopTimer final : Timer {
  explicit StopTimer(EventLoop& loop) : loop(loop) {}
  void OnTime() override { loop.Stop(); }
  EventLoop& loop;
};

// A file that stays readable, of a stranger.
class StrangerFile final : public Pollable {
 public:
  StrangerFile(EventLoop& loop, std::function<void()> then)
      : loop_(loop), then_(std::move(then)), fd_(eventfd(1, EFD_NONBLOCK)) {
    EXPECT_TRUE(loop_.Add(fd_, EPOLLIN, *this));
  }
  ~StrangerFile() override {
    loop_.Remove(fd_, *this);
    close(fd_);
  }
  void OnOutOfMemory() override { ++out_of_memory; }
  void OnReady(uint32_t) override {
    ++turns;
    then_();
  }
  bool stranger() const override { return !known; }
  int turns = 0;
  int out_of_memory = 0;
  bool known = false;

 private:
  EventLoop& loop_;
  const std::function<void()> then_;
  const int fd_;
};

void Work(absl::Duration time) {
  const absl::Time until = SteadyNow() + time;
  while (SteadyNow() < until) {
  }
}

// A hundred strangers that are always readable, each of which takes a tenth of a millisecond. They
// take turns, and one known object has its turn at least every second millisecond or so, not after
// all of them.
TEST(EventLoopTest, StrangersComeLastAndInTurns) {
  const auto loop = std::make_shared<EventLoop>();
  std::vector<std::unique_ptr<StrangerFile>> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(
        std::make_unique<StrangerFile>(*loop, [] { Work(absl::Microseconds(100)); }));
  }
  ReadyFile known(*loop);
  StopTimer timer(*loop);
  loop->timers().Set(timer, SteadyNow() + absl::Milliseconds(300));
  loop->Run();
  int fewest = strangers.front()->turns;
  int most = fewest;
  int all = 0;
  for (const auto& stranger : strangers) {
    fewest = std::min(fewest, stranger->turns);
    most = std::max(most, stranger->turns);
    all += stranger->turns;
  }
  EXPECT_GE(fewest, 1);
  EXPECT_LE(most - fewest, 1);
  // Ten turns of strangers take the millisecond that they have in a round.
  EXPECT_GE(known.ready, all / 11);
}

TEST(EventLoopTest, AStrangerThatBecomesKnownIsReportedOn) {
  const auto loop = std::make_shared<EventLoop>();
  StrangerFile* file = nullptr;
  StrangerFile stranger(*loop, [&] {
    file->known = true;
    if (file->turns == 50) loop->Stop();
  });
  file = &stranger;
  loop->Run();
  EXPECT_EQ(stranger.turns, 50);
}

TEST(EventLoopTest, RunsWhatIsPostedInOrderOnItsThread) {
  const auto loop = std::make_shared<EventLoop>();
  std::thread thread([&] { loop->Run(); });
  std::vector<int> seen;
  for (int i = 0; i < 1'000; ++i) {
    loop->Post([&, i] {
      EXPECT_TRUE(loop->OnThisThread());
      seen.push_back(i);
    });
  }
  EXPECT_FALSE(loop->OnThisThread());
  loop->Post([&] { loop->Stop(); });
  thread.join();
  ASSERT_EQ(seen.size(), 1'000);
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(seen[i], i);
}

TEST(EventLoopTest, EveryPostOfManyThreadsIsRun) {
  const auto loop = std::make_shared<EventLoop>();
  std::thread thread([&] { loop->Run(); });
  constexpr int kThreads = 4;
  constexpr int kEach = 2'000;
  int run = 0;
  RunTogether(kThreads, [&](int) {
    for (int i = 0; i < kEach; ++i) {
      loop->Post([&] {
        if (++run == kThreads * kEach) loop->Stop();
      });
    }
  });
  thread.join();
  EXPECT_EQ(run, kThreads * kEach);
}

TEST(EventLoopTest, DropsWhatIsPostedAfterTheEndAndLetsGoOfIt) {
  const auto loop = std::make_shared<EventLoop>();
  loop->Stop();
  loop->Run();
  const auto held = std::make_shared<int>(0);
  loop->Post([held] { FAIL(); });
  EXPECT_EQ(held.use_count(), 1);
}

TEST(EventLoopTest, TimerWakesALoopThatWaits) {
  const auto loop = std::make_shared<EventLoop>();
  StopTimer timer(*loop);
  const absl::Time at = SteadyNow() + absl::Milliseconds(20);
  loop->timers().Set(timer, at);
  loop->Run();
  EXPECT_GE(SteadyNow(), at);
}

// Staged work that is never empty, and records how many events the loop had handled before each
// run.
struct CountedWork final : StagedWork {
  bool empty() const override { return false; }
  bool full() const override { return is_full; }
  void Run() override {
    // When the loop stops, it runs the remaining work once more. That run is not recorded.
    if (events_between.size() < 3) events_between.push_back(events());
    if (events_between.size() == 3) loop->Stop();
  }
  bool is_full = false;
  std::function<int()> events;
  EventLoop* loop = nullptr;
  std::vector<int> events_between;
};

TEST(EventLoopTest, RoundEndsAfterItsEventsThoughMoreAreReady) {
  const auto loop = std::make_shared<EventLoop>();
  std::vector<std::unique_ptr<ReadyFile>> files;
  for (int i = 0; i < 100; ++i) files.push_back(std::make_unique<ReadyFile>(*loop));
  CountedWork work;
  work.loop = loop.get();
  work.events = [&] {
    int sum = 0;
    for (const auto& file : files) sum += file->ready;
    return sum;
  };
  loop->SetStagedWork(&work);
  loop->Run();
  EXPECT_EQ(work.events_between,
            (std::vector<int>{EventLoop::kEventsPerRound, 2 * EventLoop::kEventsPerRound,
                              3 * EventLoop::kEventsPerRound}));
  // No file is passed over: the 192 events reached each of the 100 files.
  for (const auto& file : files) EXPECT_GE(file->ready, 1);
}

TEST(EventLoopTest, QuantumThatIsStagedIsRunAtOnce) {
  const auto loop = std::make_shared<EventLoop>();
  ReadyFile file(*loop);
  CountedWork work;
  work.loop = loop.get();
  work.is_full = true;
  work.events = [&] { return file.ready; };
  loop->SetStagedWork(&work);
  loop->Run();
  EXPECT_EQ(work.events_between, (std::vector<int>{1, 2, 3}));
}

TEST(EventLoopTest, EndOfRoundIsReportedOnceHoweverOftenItIsRequested) {
  const auto loop = std::make_shared<EventLoop>();
  ReadyFile file(*loop);
  file.then = [&](uint32_t events) {
    if (events == 0) return loop->Stop();
    loop->AtEndOfRound(file);
    loop->AtEndOfRound(file);
  };
  loop->Run();
  EXPECT_EQ(file.ended_turns, 1);
}

TEST(EventLoopTest, NothingIsToldAfterRemoveThoughItWasReadyInTheSamePoll) {
  const auto loop = std::make_shared<EventLoop>();
  std::vector<std::unique_ptr<ReadyFile>> files;
  int told = 0;
  for (int i = 0; i < 3; ++i) files.push_back(std::make_unique<ReadyFile>(*loop));
  for (size_t i = 0; i < files.size(); ++i) {
    files[i]->then = [&, i](uint32_t) {
      ++told;
      for (size_t other = 0; other < files.size(); ++other) {
        if (other != i) files[other].reset();
      }
      loop->Stop();
    };
  }
  loop->Run();
  EXPECT_EQ(told, 1);
}

TEST(EventLoopTest, LongestGapIsThatOfWorkAndNotOfWaiting) {
  const auto loop = std::make_shared<EventLoop>();
  StopTimer timer(*loop);
  loop->timers().Set(timer, SteadyNow() + absl::Milliseconds(200));
  constexpr absl::Duration kWork = absl::Milliseconds(30);
  absl::Duration busy;
  loop->Post([&] {
    const absl::Time until = SteadyNow() + kWork;
    while (SteadyNow() < until) busy = loop->BusyFor();
  });
  loop->Run();
  EXPECT_GT(busy, absl::ZeroDuration());
  EXPECT_GE(loop->TakeLongestGap(), kWork);
  EXPECT_EQ(loop->TakeLongestGap(), absl::ZeroDuration());
}

// The second loop has no work, so its gaps must not hide those of the first.
TEST(LoopWatchTest, ALoopThatStallsIsSeenMeanwhileAndAfterwards) {
  LoopWatch watch;
  const auto stalled = std::make_shared<EventLoop>();
  const auto idle = std::make_shared<EventLoop>();
  for (const auto& loop : {stalled, idle}) watch.Add(*loop);
  EXPECT_EQ(watch.LongestGap(), absl::ZeroDuration());
  constexpr absl::Duration kStall = absl::Milliseconds(1100);  // the loops' timers run each second
  stalled->Post([&] {
    const absl::Time until = SteadyNow() + kStall;
    while (watch.LongestGap() < kStall) ASSERT_LT(SteadyNow(), until + absl::Seconds(20));
  });
  std::thread other([&] { idle->Run(); });
  StopTimer stop(*stalled);
  stalled->timers().Set(stop, SteadyNow() + 2 * kStall + absl::Seconds(1));
  stalled->Run();
  EXPECT_GE(watch.LongestGap(), kStall);
  EXPECT_LT(watch.BusyFor(), kStall);
  idle->Stop();
  other.join();
}

}  // namespace
}  // namespace phimap::testing
