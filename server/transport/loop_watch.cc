#include "server/transport/loop_watch.h"

#include <algorithm>

#include "server/sync/steady_time.h"

namespace phimap {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Seconds(1);
constexpr int kLooksOfAWindow = 15;

}  // namespace

// Reads a loop's longest gap every second. The loop owns the timer.
class LoopWatch::GapTimer final : public Timer {
 public:
  GapTimer(EventLoop& loop, prometheus::Gauge* gauge) : loop_(loop), gauge_(gauge) {}

  void OnTime() override {
    this_window_ = std::max(this_window_, loop_.TakeLongestGap());
    gauge_->Set(absl::ToDoubleSeconds(std::max(this_window_, last_window_)));
    if (++looks_ % kLooksOfAWindow == 0) {
      last_window_ = this_window_;
      this_window_ = absl::ZeroDuration();
    }
    loop_.timers().Set(*this, SteadyNow() + kBetweenLooks);
  }

 private:
  EventLoop& loop_;
  prometheus::Gauge* const gauge_;
  absl::Duration this_window_ = absl::ZeroDuration();
  absl::Duration last_window_ = absl::ZeroDuration();
  int looks_ = 0;
};

void LoopWatch::Add(EventLoop& loop) {
  {
    MutexLock lock(&mutex_);
    loops_.push_back(loop.shared_from_this());
  }
  loop.Post([&loop, gauge = longest_gap_] {
    auto timer = std::make_unique<GapTimer>(loop, gauge);
    timer->OnTime();
    loop.Keep(std::move(timer));
  });
}

int LoopWatch::count() const {
  MutexLock lock(&mutex_);
  return static_cast<int>(loops_.size());
}

absl::Duration LoopWatch::BusyTime() const {
  absl::Duration time = absl::ZeroDuration();
  MutexLock lock(&mutex_);
  for (const auto& loop : loops_) time += loop->BusyTime();
  return time;
}

int64_t LoopWatch::MemoryFailures() const {
  int64_t failures = 0;
  MutexLock lock(&mutex_);
  for (const auto& loop : loops_) failures += loop->memory_failures();
  return failures;
}

absl::Duration LoopWatch::BusyFor() const {
  absl::Duration longest = absl::ZeroDuration();
  MutexLock lock(&mutex_);
  for (const auto& loop : loops_) longest = std::max(longest, loop->BusyFor());
  return longest;
}

}  // namespace phimap
