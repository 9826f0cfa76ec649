// Converts the outcome of a gRPC call to absl::Status, and decides which failed calls are retried,
// and when. Includes gRPC: for .cc files only.
#ifndef PHIMAP_CLIENT_CPP_GRPC_STATUS_H_
#define PHIMAP_CLIENT_CPP_GRPC_STATUS_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cpp/client.h"

namespace phimap::client {

// Returns the status of a call that ended with the canonical code `code` and with `message`.
// `details` is the value of the trailing metadata "grpc-status-details-bin". BadRequest (its first
// violation), ErrorInfo and RetryInfo are attached as a phimap::ErrorDetail, which DetailOf reads.
// The field is the caller's: "gamma" for the request's "spec.gamma". Details that are missing,
// unknown or malformed are ignored, so the code and the message are never
// lost. A code that is not canonical becomes kUnknown. Pure, thread-safe.
absl::Status DecodeError(int code, absl::string_view message, absl::string_view details);

// Returns `status` with the server's typed details attached (DecodeError).
absl::Status FromGrpc(const grpc::Status& status);

// Returns true if the connection broke or could not be made, or the server itself is unavailable.
// Returns false if only a kernel service behind the server failed.
bool IsBrokenConnection(const absl::Status& status);

// Sets `deadline` on the call unless it is infinite.
void SetDeadline(grpc::ClientContext& context, absl::Time deadline);

// Maximum number of attempts while no server has answered. A server that never answered is more
// likely the wrong server than one that restarts, and the user should learn that soon.
inline constexpr int kAttemptsToBegin = 5;

// Maximum number of times that a call is repeated at once because its revision is of another
// history (revision_memory.h). Once is enough, unless the history changes again meanwhile.
inline constexpr int kHistoriesLeft = 3;

// Returns true if the server reports that it did not begin the call: UNAVAILABLE with the reason
// SERVER_SHUTTING_DOWN or REVISION_NOT_REACHED.
bool WasNotBegun(const absl::Status& status);

// Returns the time to wait before a retry, as requested by the server, or 0 if the server requests
// none. Returns nullopt if a retry cannot help: it can after UNAVAILABLE, after a broken
// connection, and after RESOURCE_EXHAUSTED with a delay. A change must carry an operation id, so
// that it is made once.
std::optional<absl::Duration> RetryDelay(const absl::Status& status);

// Calls `attempt` until it succeeds or fails with an error that is not retried. Makes at most
// min(policy.max_attempts, kAttemptsToBegin) attempts, and starts none after `deadline`. Returns
// the status of the last attempt.
//
// Between attempts, sleeps on this thread for the policy's backoff, or longer if the server asks
// for it. The backoff varies randomly by a fifth, so that the clients of a restarted server do not
// all return at once. A call that was refused because of its revision is retried at once,
// at most kHistoriesLeft times.
absl::Status CallWithRetries(const RetryPolicy& policy, absl::Time deadline,
                             const std::function<absl::Status()>& attempt);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_GRPC_STATUS_H_
