// Policy for retries of failed calls.
#ifndef PHIMAP_CLIENT_CPP_RETRY_POLICY_H_
#define PHIMAP_CLIENT_CPP_RETRY_POLICY_H_

#include <algorithm>
#include <cmath>

#include "absl/time/time.h"

namespace phimap::client {

// Exponential backoff without jitter: a long call belongs to one client, so clients do not retry in
// step. The defaults wait about 16 seconds in all, long enough for a supervisor to restart a
// server.
struct RetryPolicy {
  // Attempts in all, the first included.
  int max_attempts = 8;
  absl::Duration initial_backoff = absl::Milliseconds(200);
  absl::Duration max_backoff = absl::Seconds(5);

  // Wait before attempt number `attempt`, counted from 1. REQUIRES: attempt >= 2.
  absl::Duration BackoffBefore(int attempt) const {
    return std::min(max_backoff, initial_backoff * std::exp2(attempt - 2));
  }
};

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_RETRY_POLICY_H_
