// Decides which failed calls are retried, and when.
#ifndef PHIMAP_CLIENT_CPP_RETRY_DELAY_H_
#define PHIMAP_CLIENT_CPP_RETRY_DELAY_H_

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/retry_policy.h"

namespace phimap::client {

// Effect of a call on the server.
enum class CallEffect {
  // The call changes nothing, or is idempotent: it may be retried whenever that can help.
  kNone,
  // The call changes something. It may be retried only if it is certain that the server did not
  // begin it. Otherwise a retry could undo a change that another client made between the two
  // attempts.
  kChange,
};

// Maximum number of attempts while no server has answered. A server that never answered is more
// likely the wrong server than one that restarts, and the user should learn that soon.
inline constexpr int kAttemptsToBegin = 5;

// Returns true if the server reports that it did not begin the call: UNAVAILABLE with the reason
// SERVER_SHUTTING_DOWN or REVISION_NOT_REACHED.
bool WasNotBegun(const absl::Status& status);

// Returns the time to wait before a retry, as requested by the server, or 0 if the server requests
// none. Returns nullopt if a retry cannot help or is not safe. A call without effects (kNone) may
// be retried after UNAVAILABLE, after a broken connection, and after RESOURCE_EXHAUSTED with a
// delay. A call that changes something (kChange) may be retried only if the server did not begin
// it.
std::optional<absl::Duration> RetryDelay(const absl::Status& status, CallEffect effect);

// Calls `attempt` until it succeeds or fails with an error that is not retried. Makes at most
// min(policy.max_attempts, kAttemptsToBegin) attempts, and starts none after `deadline`. Returns
// the status of the last attempt.
//
// Between attempts, sleeps on this thread for the policy's backoff, or longer if the server asks
// for it. The backoff varies randomly by a fifth, so that the clients of a restarted server do not
// all return at once. A call that was refused because of its revision (revision_memory.h) is
// retried at once, but only once.
absl::Status CallWithRetries(const RetryPolicy& policy, CallEffect effect, absl::Time deadline,
                             const std::function<absl::Status()>& attempt);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_RETRY_DELAY_H_
