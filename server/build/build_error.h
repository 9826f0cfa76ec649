// Errors that reject or end builds.
#ifndef PHIMAP_SERVER_BUILD_BUILD_ERROR_H_
#define PHIMAP_SERVER_BUILD_BUILD_ERROR_H_

#include <cstdint>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/build/build_job.h"

namespace phimap {

// Delay after which a client that was rejected for lack of capacity may retry.
inline constexpr int64_t kBuildRetryDelayMs = 5000;

// Returns whether a retry of the same build may succeed later: RESOURCE_EXHAUSTED, UNAVAILABLE and
// ABORTED are transient.
bool IsTransient(const absl::Status& error);

// ALREADY_EXISTS: the id belongs to a build with another spec.
absl::Status OtherSpec(const BuildId& id);
// ABORTED: the build's stream is still open.
absl::Status StillOpen(const BuildId& id);
// DATA_LOSS: the client sent `sent` rows, but `came` arrived.
absl::Status WrongRowCount(int64_t sent, int64_t came);
// RESOURCE_EXHAUSTED: the number of unfinished builds has reached `limit`.
// `limits`: all limits that apply to the caller; `limit`: how many builds it may have.
absl::Status TooManyBuilds(int unfinished, absl::string_view limits, int limit);
// UNAVAILABLE: the server is shutting down. `what` is the message.
absl::Status ShuttingDown(absl::string_view what);
// CANCELLED: CancelBuild ended the build.
absl::Status CancelledByCall();
// ABORTED: the server ended before the build was done, and no client was waiting for it.
absl::Status AbortedByRestart();
// NOT_FOUND: the mapping has no build with this id.
absl::Status NoSuchBuild(const BuildId& id);
// RESOURCE_EXHAUSTED: the machine has not enough memory for the build.
absl::Status OutOfMemory();

// Runs `step` and returns its result, or OutOfMemory() if it throws std::bad_alloc.
template <typename Result, typename Step>
Result CatchOutOfMemory(const Step& step) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

}  // namespace phimap

#endif  // PHIMAP_SERVER_BUILD_BUILD_ERROR_H_
