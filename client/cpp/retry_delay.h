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
  // The call changes something. It may be retried only if the server certainly did not begin it:
  // between two attempts another client may have changed the same thing, and a retry would undo
  // that.
  kChange,
};

// Maximum number of attempts while no server has answered. A server that never answered is more
// likely the wrong server than one that restarts, and the user should learn that soon.
inline constexpr int kAttemptsToBegin = 5;

// Returns true if the server reports that it did not begin the call: UNAVAILABLE with the reason
// SERVER_SHUTTING_DOWN or REVISION_NOT_REACHED.
bool WasNotBegun(const absl::Status& status);

// Returns the time that the server asks to wait before a retry, 0 if it names none; nullopt if a
// retry cannot help or is not safe. Retries with kNone: UNAVAILABLE, a broken connection, and
// RESOURCE_EXHAUSTED with a delay. Retries with kChange: only calls that were not begun.
std::optional<absl::Duration> RetryDelay(const absl::Status& status, CallEffect effect);

// Calls `attempt` until it succeeds or fails for good, up to min(policy.max_attempts,
// kAttemptsToBegin) times. Stops early if the next attempt would start after `deadline`. Returns
// the last attempt's status. Between attempts, sleeps on this thread for the policy's backoff, or
// longer if the server asks for it. The backoff varies randomly by a fifth, so that the clients of
// a restarted server do not all return at once. A call that was refused because of its revision
// (revision_memory.h) is retried at once, but only once.
absl::Status CallWithRetries(const RetryPolicy& policy, CallEffect effect, absl::Time deadline,
                             const std::function<absl::Status()>& attempt);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_RETRY_DELAY_H_
