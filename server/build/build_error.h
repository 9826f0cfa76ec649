// What builds are refused or ended with.
#ifndef PHIMAP_SERVER_BUILD_BUILD_ERROR_H_
#define PHIMAP_SERVER_BUILD_BUILD_ERROR_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/build/build_job.h"

namespace phimap {

// When a client that was refused for want of room may come back.
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
// UNAVAILABLE; `what` is the sentence for people.
absl::Status ShuttingDown(absl::string_view what);
// NOT_FOUND.
// CancelBuild ended it.
absl::Status CancelledByCall();
// Its server ended before it was done, and nobody waited for it.
absl::Status AbortedByRestart();
absl::Status NoSuchBuild(const BuildId& id);
// RESOURCE_EXHAUSTED.
absl::Status OutOfMemory();

// An error of a block with the row counted from the stream's begin too, in its message and as
// "stream_row": a number within a block locates nothing in a file of millions. Unchanged if no row
// is at fault.
absl::Status InStream(const absl::Status& status, int64_t rows_before);

// An error of BuildVersion with its field counted from the request's root: the core names fields
// from BuildSpec
// ("spec.landmarks", "kernel"), which stands under "spec" in BuildRequest.
absl::Status FromRequestRoot(const absl::Status& status);

}  // namespace phimap

#endif  // PHIMAP_SERVER_BUILD_BUILD_ERROR_H_
