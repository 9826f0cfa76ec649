// Errors with which builds are refused or ended.
#ifndef PHIMAP_SERVER_BUILD_BUILD_ERROR_H_
#define PHIMAP_SERVER_BUILD_BUILD_ERROR_H_

#include <cstdint>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/build/build_job.h"

namespace phimap {

// Delay after which a client that was refused for lack of capacity may come back.
inline constexpr int64_t kBuildRetryDelayMs = 5000;

// Whether the same build may succeed later: RESOURCE_EXHAUSTED, UNAVAILABLE and ABORTED pass by
// waiting.
bool IsTransient(const absl::Status& error);

// ALREADY_EXISTS: the id is known with another spec.
absl::Status OtherSpec(const BuildId& id);
// ABORTED: the build's stream is still open.
absl::Status StillOpen(const BuildId& id);
// DATA_LOSS: the client counted `sent` rows, `came` came.
absl::Status WrongRowCount(int64_t sent, int64_t came);
// RESOURCE_EXHAUSTED: `unfinished` builds are as many as may be.
absl::Status TooManyBuilds(int unfinished, int limit);
// UNAVAILABLE; `what` is the message.
absl::Status ShuttingDown(absl::string_view what);
// CANCELLED: CancelBuild ended it.
absl::Status CancelledByCall();
// The server ended before the build was done, and no client waited for it.
absl::Status AbortedByRestart();
// NOT_FOUND.
absl::Status NoSuchBuild(const BuildId& id);
// RESOURCE_EXHAUSTED.
absl::Status OutOfMemory();

// An error of a block with the row counted from the stream's begin too, in its message and as
// "stream_row": a number within a block locates nothing in a file of millions. Unchanged if no row
// is at fault.
absl::Status InStream(const absl::Status& status, int64_t rows_before);

// An error of BuildVersion with its field counted from the request's root: the core names fields of
// BuildSpec ("spec.landmarks", "kernel"), which is "spec" in BuildRequest.
absl::Status FromRequestRoot(const absl::Status& status);

// Runs `step`; OutOfMemory if it throws std::bad_alloc.
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
