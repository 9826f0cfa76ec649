// Threads that the system may refuse: it has no more for the process, its user or its container
// (RLIMIT_NPROC, pids.max), or no memory for its stack.
#ifndef PHIMAP_CORE_THREAD_START_THREAD_H_
#define PHIMAP_CORE_THREAD_START_THREAD_H_

#include <functional>
#include <optional>
#include <thread>

#include "absl/strings/string_view.h"

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

}  // namespace phimap

#endif  // PHIMAP_CORE_THREAD_START_THREAD_H_
