// Threads that the system may refuse: it has no more for the process, its user or its container
// (RLIMIT_NPROC, pids.max), or no memory for its stack. Also the time slices of threads, by which a
// thread that wakes up runs sooner while other threads occupy the cores.
#ifndef PHIMAP_CORE_THREAD_START_THREAD_H_
#define PHIMAP_CORE_THREAD_START_THREAD_H_

#include <functional>
#include <optional>
#include <thread>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace phimap {

// Starts a thread that runs `work`, or returns nullopt if the system refuses it.
std::optional<std::thread> TryStartThread(std::function<void()> work);

// Starts a thread without which the program cannot do its work. If the system refuses it, prints
// to stderr what the thread was for and which limits are in force, and ends the process with exit
// code 1. Programs start such threads before they promise anything to anybody.
std::thread StartThread(absl::string_view purpose, std::function<void()> work);

// Prints to stderr that the system refused `what` with the error number `error`, and `advice`, and
// ends the process with exit code 1.
[[noreturn]] void EndForLackOf(absl::string_view what, int error, absl::string_view advice);

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

#endif  // PHIMAP_CORE_THREAD_START_THREAD_H_
