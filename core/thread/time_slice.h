// Shortens the time until a thread that wakes up runs while others have the cores.
#ifndef PHIMAP_CORE_THREAD_TIME_SLICE_H_
#define PHIMAP_CORE_THREAD_TIME_SLICE_H_

#include "absl/time/time.h"

namespace phimap {

// For threads that others wait for.
inline constexpr absl::Duration kShortTimeSlice = absl::Microseconds(100);

// Asks Linux for another time slice of the calling thread, from 0.1 to 100 ms. Since 6.6 its
// scheduler lets a running thread use up its slice before it looks at threads that woke up
// meanwhile, unless they asked for a shorter slice (since 6.12); with few cores and timer ticks of
// 4 ms a thread would wait for several. Needs no privilege. Older kernels ignore it, and only
// latency depends on it, so a refusal is not an error.
void RequestTimeSlice(absl::Duration slice);

// Time slice of the calling thread; zero if the kernel does not say.
absl::Duration TimeSlice();

}  // namespace phimap

#endif  // PHIMAP_CORE_THREAD_TIME_SLICE_H_
