// Makes chosen calls of phimapd_failing to the system fail, from another process, and sets its
// clock.
//
// phimapd_failing is phimapd with failing_calls.cc, which replaces the functions that create
// threads, that allocate memory and that an event loop calls. It reads what to fail from a file
// that both processes map, whose path is in the environment variable kFailingCallsVariable.
#ifndef PHIMAP_TESTS_E2E_FAILING_CALLS_H_
#define PHIMAP_TESTS_E2E_FAILING_CALLS_H_

#include <atomic>
#include <cstdint>

namespace phimap::e2e {

inline constexpr char kFailingCallsVariable[] = "PHIMAP_TEST_FAILING_CALLS";
// Seconds by which the clock of the process is ahead of the machine's.
inline constexpr char kClockAheadVariable[] = "PHIMAP_TEST_CLOCK_AHEAD";

enum class FailingCall : int32_t {
  kNone,
  // The creation of a thread, by any thread.
  kThread,
  // An allocation on the thread of an event loop.
  kAllocation,
  // A system call on the thread of an event loop, about sockets or events.
  kSystemCall,
};

// Content of the file. All zero, nothing fails.
struct FailingCalls {
  std::atomic<FailingCall> kind;
  // Whether all calls from the chosen one on fail, or that one alone.
  std::atomic<int32_t> and_all_later;
  // A countdown: the call that brings it from 1 to 0 fails.
  std::atomic<int64_t> until;
  // How many calls have failed.
  std::atomic<int64_t> failed;
  // How many of them a library made (protobuf, Abseil, OpenSSL, nghttp2) that cannot bear it.
  std::atomic<int64_t> failed_in_library;
};

}  // namespace phimap::e2e

#endif  // PHIMAP_TESTS_E2E_FAILING_CALLS_H_
