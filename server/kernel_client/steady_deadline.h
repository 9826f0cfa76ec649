// Deadlines that do not move when the wall clock steps.
#ifndef PHIMAP_SERVER_KERNEL_CLIENT_STEADY_DEADLINE_H_
#define PHIMAP_SERVER_KERNEL_CLIENT_STEADY_DEADLINE_H_

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace phimap {

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

#endif  // PHIMAP_SERVER_KERNEL_CLIENT_STEADY_DEADLINE_H_
