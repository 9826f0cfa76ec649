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
  // The call changes nothing, or has the same effect however often it is made, so any failed
  // attempt may be retried.
  kNone,
  // The call changes something. It may be retried only if the first attempt certainly was not
  // begun: meanwhile another client may have changed the same thing, and a second attempt would
  // undo that.
  kChange,
};

// Maximum number of attempts until a server has answered for the first time. A server that never
// answered is more likely the wrong one than one that restarts, and the user should learn so soon.
inline constexpr int kAttemptsToBegin = 5;

// True if the server reports that it did not begin the call: UNAVAILABLE with the reason
// SERVER_SHUTTING_DOWN or REVISION_NOT_REACHED.
bool WasNotBegun(const absl::Status& status);

// Returns the time that the server asks to wait before a retry; nullopt if a retry cannot help or
// is not safe. With kNone a retry follows UNAVAILABLE, a broken connection, and a refusal with a
// delay; with kChange only a call that was not begun.
std::optional<absl::Duration> RetryDelay(const absl::Status& status, CallEffect effect);

// Retries a unary call until it succeeds, fails for good, has been made min(policy.max_attempts,
// kAttemptsToBegin) times, or until the next attempt would come after `deadline`. Returns the last
// attempt's status. Waits on this thread: the policy's backoff, randomised by a fifth so that the
// clients of a restarting server do not return together, or longer if the server asks for it. A
// call that was refused for its revision (revision_memory.h) is retried at once.
absl::Status CallWithRetries(const RetryPolicy& policy, CallEffect effect, absl::Time deadline,
                             const std::function<absl::Status()>& attempt);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_RETRY_DELAY_H_
