#include "client/cpp/error_decoder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
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
  return MakeError(canonical, detail.reason, detail.field, text, std::move(detail.metadata),
                   detail.retry_delay_ms);
}

}  // namespace phimap::client
