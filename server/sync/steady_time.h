// A clock for deadlines and durations. Setting the machine's clock does not affect it.
#ifndef PHIMAP_SERVER_SYNC_STEADY_TIME_H_
#define PHIMAP_SERVER_SYNC_STEADY_TIME_H_

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

}  // namespace phimap

#endif  // PHIMAP_SERVER_SYNC_STEADY_TIME_H_
