// A clock for deadlines and durations. Setting the machine's clock does not affect it.
#ifndef PHIMAP_CORE_THREAD_STEADY_TIME_H_
#define PHIMAP_CORE_THREAD_STEADY_TIME_H_

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace phimap {

// Returns a time that reads like the wall clock but never jumps: the steady time since the first
// call, added to the wall clock's time at that call. Not for times that people see.
inline absl::Time SteadyNow() {
  static const absl::Time wall = absl::Now();
  static const std::chrono::steady_clock::time_point steady = std::chrono::steady_clock::now();
  return wall + absl::FromChrono(std::chrono::steady_clock::now() - steady);
}

// For deadlines that do not move when the wall clock steps.
using SteadyTime = std::chrono::steady_clock::time_point;

// Converts `deadline` to the steady clock: the result is as far from `now` as `deadline` is from
// `wall_now`. Infinite times and times beyond the clock's range become the clock's first or last
// time. Pure.
inline SteadyTime SteadyDeadline(absl::Time deadline, absl::Time wall_now = absl::Now(),
                                 SteadyTime now = std::chrono::steady_clock::now()) {
  const absl::Duration left = deadline - wall_now;
  if (left >= absl::FromChrono(SteadyTime::max() - now)) return SteadyTime::max();
  if (left <= -absl::FromChrono(now.time_since_epoch())) return SteadyTime::min();
  return now + absl::ToChronoNanoseconds(left);
}

}  // namespace phimap

#endif  // PHIMAP_CORE_THREAD_STEADY_TIME_H_
