// When a failed call is retried.
#ifndef PHIMAP_CLIENT_CPP_RETRY_POLICY_H_
#define PHIMAP_CLIENT_CPP_RETRY_POLICY_H_

#include <algorithm>
#include <cmath>

#include "absl/time/time.h"

namespace phimap::client {

// Exponential backoff. With the defaults, the waits take about 16 seconds in total, long enough for
// a supervisor to restart a server. There is no jitter, because a long call belongs to one client:
// no crowd of clients retries at the same moment.
struct RetryPolicy {
  // Maximum number of attempts, including the first.
  int max_attempts = 8;
  absl::Duration initial_backoff = absl::Milliseconds(200);
  absl::Duration max_backoff = absl::Seconds(5);

  // Returns the wait before attempt number `attempt`, counted from 1. REQUIRES: attempt >= 2.
  absl::Duration BackoffBefore(int attempt) const {
    return std::min(max_backoff, initial_backoff * std::exp2(attempt - 2));
  }
};

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_RETRY_POLICY_H_
