#include "client/cpp/grpc_status.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client/cpp/revision_memory.h"
#include "core/status/error.h"
#include "phimap/rpc/error_details.pb.h"

namespace phimap::client {
namespace {

// If `any` holds the canonical type `name`, parses it into `message` and returns true. Our messages
// have the same wire format as the canonical types.
template <typename Message>
bool Unpack(const google::protobuf::Any& any, absl::string_view name, Message& message) {
  const absl::string_view url = any.type_url();
  const size_t slash = url.rfind('/');
  if (slash == absl::string_view::npos || url.substr(slash + 1) != name) return false;
  return message.ParseFromString(any.value());
}

// Reads `packed` into `detail`. Returns false if `packed` is not understood.
bool ReadDetail(const google::protobuf::Any& packed, ErrorDetail& detail) {
  rpc::BadRequest bad_request;
  if (Unpack(packed, "google.rpc.BadRequest", bad_request)) {
    if (bad_request.field_violations().empty()) return false;
    detail.field = bad_request.field_violations(0).field();
    return true;
  }
  rpc::ErrorInfo info;
  if (Unpack(packed, "google.rpc.ErrorInfo", info)) {
    detail.reason = info.reason();
    for (const auto& [key, value] : info.metadata()) {
      detail.metadata[key] = value;
    }
    return true;
  }
  rpc::RetryInfo retry;
  if (Unpack(packed, "google.rpc.RetryInfo", retry)) {
    const google::protobuf::Duration& delay = retry.retry_delay();
    // Rounded up, so that a caller does not retry too early. Longer delays than a day are capped.
    const int64_t seconds = std::clamp<int64_t>(delay.seconds(), 0, 86'400);
    detail.retry_delay_ms = seconds * 1000 + (std::max(delay.nanos(), 0) + 999'999) / 1'000'000;
    return true;
  }
  return false;
}

constexpr absl::string_view kNotBegun[] = {reason::kServerShuttingDown,
                                           reason::kRevisionNotReached};

// Returns a random factor of 0.8 to 1.2.
double Spread() {
  thread_local std::minstd_rand generator{std::random_device()()};
  return std::uniform_real_distribution<double>(0.8, 1.2)(generator);
}

}  // namespace

absl::Status DecodeError(int code, absl::string_view message, absl::string_view details) {
  if (code == 0) return absl::OkStatus();
  const absl::StatusCode canonical =
      code >= 1 && code <= 16 ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown;
  rpc::Status status;
  ErrorDetail detail;
  bool any = false;
  if (!details.empty() && status.ParseFromArray(details.data(), static_cast<int>(details.size()))) {
    for (const google::protobuf::Any& packed : status.details()) any |= ReadDetail(packed, detail);
  }
  if (!any) return absl::Status(canonical, message);
  // MakeError prefixes the message with the field, which the server has already done.
  absl::string_view text = message;
  if (!detail.field.empty()) absl::ConsumePrefix(&text, absl::StrCat(detail.field, ": "));
  // The caller knows the fields of `spec` as options of the call, or as parameters in their texts.
  absl::string_view field = detail.field;
  for (const absl::string_view outer : {"spec.build.", "spec.tuning.", "spec."}) {
    if (absl::ConsumePrefix(&field, outer)) break;
  }
  detail.field = std::string(field);
  return MakeError(canonical, detail.reason, detail.field, text, std::move(detail.metadata),
                   detail.retry_delay_ms);
}

absl::Status FromGrpc(const grpc::Status& status) {
  // grpc::Status::error_details is the value of "grpc-status-details-bin".
  return DecodeError(status.error_code(), status.error_message(), status.error_details());
}

bool IsBrokenConnection(const absl::Status& status) {
  if (status.code() == absl::StatusCode::kUnavailable) {
    // With these reasons the server reports a kernel service that fails, although the server has
    // already retried.
    const std::optional<ErrorDetail> detail = DetailOf(status);
    return !detail.has_value() || (detail->reason != reason::kKernelServiceUnavailable &&
                                   detail->reason != reason::kKernelServiceTimedOut);
  }
  // gRPC 1.51 returns this error when the transport closes between two operations of a stream.
  return status.code() == absl::StatusCode::kUnknown &&
         absl::StrContains(status.message(), "Stream removed");
}

void SetDeadline(grpc::ClientContext& context, absl::Time deadline) {
  if (deadline != absl::InfiniteFuture()) context.set_deadline(absl::ToChronoTime(deadline));
}

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
