#include "client/cpp/retry_delay.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/revision_memory.h"
#include "core/status/error.h"

namespace phimap::client {
namespace {

constexpr absl::string_view kNotBegun[] = {"SERVER_SHUTTING_DOWN", "REVISION_NOT_REACHED"};

// Returns a random factor of 0.8 to 1.2.
double Spread() {
  thread_local std::minstd_rand generator{std::random_device()()};
  return std::uniform_real_distribution<double>(0.8, 1.2)(generator);
}

}  // namespace

bool WasNotBegun(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  return absl::IsUnavailable(status) && detail.has_value() &&
         absl::c_linear_search(kNotBegun, detail->reason);
}

std::optional<absl::Duration> RetryDelay(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  const absl::Duration asked = absl::Milliseconds(detail ? detail->retry_delay_ms : 0);
  if (absl::IsUnavailable(status) || IsBrokenConnection(status)) return asked;
  if (absl::IsResourceExhausted(status) && asked > absl::ZeroDuration()) return asked;
  return std::nullopt;
}

absl::Status CallWithRetries(const RetryPolicy& policy, absl::Time deadline,
                             const std::function<absl::Status()>& attempt) {
  const int attempts = std::min(policy.max_attempts, kAttemptsToBegin);
  int refused = 0;
  for (int made = 1;; ++made) {
    const absl::Status status = attempt();
    if (status.ok()) return status;
    if (IsOfAnotherHistory(status) && ++refused <= kHistoriesLeft) continue;
    if (made >= attempts) return status;
    const std::optional<absl::Duration> asked = RetryDelay(status);
    if (!asked.has_value()) return status;
    const absl::Duration wait = std::max(policy.BackoffBefore(made + 1) * Spread(), *asked);
    if (absl::Now() + wait >= deadline) return status;
    absl::SleepFor(wait);
  }
}

}  // namespace phimap::client
