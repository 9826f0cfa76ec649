#include "server/rpc/transport/timer_wheel.h"

#include <algorithm>
#include <new>

namespace phimap {
namespace {

// Value of tick_ for a timer that is in the list of due timers instead of a slot.
constexpr int64_t kDue = -1;

}  // namespace

Timer::~Timer() {
  Cancel();
  if (runs_in_ != nullptr) runs_in_->running_ = nullptr;
}

void Timer::Cancel() {
  if (wheel_ != nullptr) wheel_->Remove(*this);
}

TimerWheel::~TimerWheel() {
  for (Timer* first : slots_) {
    while (first != nullptr) {
      Timer* const next = first->after_;
      first->wheel_ = nullptr;
      first = next;
    }
  }
}

void TimerWheel::Set(Timer& timer, absl::Time at) {
  if (timer.wheel_ != nullptr) Remove(timer);
  if (at == absl::InfiniteFuture()) return;
  // Rounded up, so that the timer never fires early.
  const int64_t tick = absl::ToInt64Nanoseconds(at - start_) / absl::ToInt64Nanoseconds(kTick) + 1;
  timer.tick_ = std::max(tick, done_ + 1);
  Insert(timer);
}

void TimerWheel::Insert(Timer& timer) {
  const int slot = static_cast<int>(timer.tick_ % kSlots);
  timer.wheel_ = this;
  timer.before_ = nullptr;
  timer.after_ = slots_[slot];
  if (timer.after_ != nullptr) timer.after_->before_ = &timer;
  slots_[slot] = &timer;
  used_[slot / 64] |= uint64_t{1} << (slot % 64);
  ++count_;
}

void TimerWheel::Remove(Timer& timer) {
  if (timer.after_ != nullptr) timer.after_->before_ = timer.before_;
  if (timer.before_ != nullptr) {
    timer.before_->after_ = timer.after_;
  } else if (timer.tick_ == kDue) {
    due_ = timer.after_;
  } else {
    const int slot = static_cast<int>(timer.tick_ % kSlots);
    slots_[slot] = timer.after_;
    if (timer.after_ == nullptr) used_[slot / 64] &= ~(uint64_t{1} << (slot % 64));
  }
  timer.wheel_ = nullptr;
  timer.before_ = nullptr;
  timer.after_ = nullptr;
  --count_;
}

void TimerWheel::CollectSlot(int slot) {
  for (Timer* timer = slots_[slot]; timer != nullptr;) {
    Timer* const next = timer->after_;
    if (timer->tick_ <= done_) {
      Remove(*timer);
      timer->wheel_ = this;
      timer->tick_ = kDue;
      timer->after_ = due_;
      if (due_ != nullptr) due_->before_ = timer;
      due_ = timer;
      ++count_;
    }
    timer = next;
  }
}

int TimerWheel::NextSlot(int from) const {
  for (int i = 0; i <= kWords; ++i) {
    const int word = (from / 64 + i) % kWords;
    uint64_t bits = used_[word];
    if (i == 0) bits &= ~uint64_t{0} << (from % 64);
    if (i == kWords) bits &= (from % 64 == 0) ? 0 : ~(~uint64_t{0} << (from % 64));
    if (bits != 0) return word * 64 + __builtin_ctzll(bits);
  }
  return -1;
}

int TimerWheel::Advance(absl::Time now) {
  const int64_t until = absl::ToInt64Nanoseconds(now - start_) / absl::ToInt64Nanoseconds(kTick);
  if (until <= done_) return 0;
  const int64_t first = done_ + 1;
  done_ = until;
  if (count_ == 0) return 0;
  const int64_t steps = std::min<int64_t>(until - first + 1, kSlots);
  for (int64_t i = 0; i < steps; ++i) {
    const int slot = static_cast<int>((first + i) % kSlots);
    if (slots_[slot] != nullptr) CollectSlot(slot);
  }
  int failures = 0;
  while (due_ != nullptr) {
    Timer& timer = *due_;
    Remove(timer);
    running_ = &timer;
    timer.runs_in_ = this;
    try {
      timer.OnTime();  // may have destroyed the timer
    } catch (const std::bad_alloc&) {
      ++failures;
      if (running_ != nullptr && !running_->is_set()) Set(*running_, now + kTimerRetry);
    }
    if (running_ != nullptr) running_->runs_in_ = nullptr;
    running_ = nullptr;
  }
  return failures;
}

absl::Time TimerWheel::Next() const {
  if (count_ == 0) return absl::InfiniteFuture();
  const int from = static_cast<int>((done_ + 1) % kSlots);
  const int slot = NextSlot(from);
  if (slot < 0) return absl::InfiniteFuture();
  const int64_t ticks = done_ + 1 + (slot - from + kSlots) % kSlots;
  return start_ + ticks * kTick;
}

}  // namespace phimap
