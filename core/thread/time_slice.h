// Makes a thread that wakes up run sooner while other threads occupy the cores.
#ifndef PHIMAP_CORE_THREAD_TIME_SLICE_H_
#define PHIMAP_CORE_THREAD_TIME_SLICE_H_

#include "absl/time/time.h"

namespace phimap {

// Time slice for threads that others wait for.
inline constexpr absl::Duration kShortTimeSlice = absl::Microseconds(100);

// Requests a time slice of 0.1 to 100 ms for the calling thread. Since Linux 6.6, the scheduler
// lets a running thread use up its slice before it considers threads that woke up meanwhile. Since
// 6.12, a woken thread with a shorter slice need not wait so long; with few cores and timer ticks
// of 4 ms, this saves milliseconds. Needs no privilege. Failures are ignored, because older kernels
// lack the feature and only latency depends on it.
void RequestTimeSlice(absl::Duration slice);

// Returns the time slice of the calling thread; zero if Linux does not report it.
absl::Duration TimeSlice();

}  // namespace phimap

#endif  // PHIMAP_CORE_THREAD_TIME_SLICE_H_
