#include "proto/error/request_errors.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/any.pb.h"
#include "phimap/rpc/error_details.pb.h"

namespace phimap {
namespace {

constexpr char kDomain[] = "phimap";

void Pack(const google::protobuf::MessageLite& detail, const char* name, rpc::Status& status) {
  google::protobuf::Any& any = *status.add_details();
  any.set_type_url(absl::StrCat("type.googleapis.com/google.rpc.", name));
  detail.SerializeToString(any.mutable_value());
}

void AddBadRequest(const ErrorDetail& detail, absl::string_view message, size_t max_text_bytes,
                   rpc::Status& status) {
  rpc::BadRequest bad_request;
  auto& violation = *bad_request.add_field_violations();
  violation.set_field(Shortened(detail.field, max_text_bytes));
  violation.set_description(
      Shortened(absl::StripPrefix(message, absl::StrCat(detail.field, ": ")), max_text_bytes));
  Pack(bad_request, "BadRequest", status);
}

}  // namespace

std::string EncodedDetails(absl::StatusCode code, absl::string_view message,
                           const ErrorDetail& detail, size_t max_text_bytes) {
  const bool texts = max_text_bytes > 0;
  rpc::Status status;
  status.set_code(static_cast<int>(code));
  if (texts) status.set_message(Shortened(message, max_text_bytes));
  if (texts && !detail.field.empty()) AddBadRequest(detail, message, max_text_bytes, status);
  rpc::ErrorInfo info;
  info.set_reason(detail.reason);
  info.set_domain(kDomain);
  for (const auto& [key, value] : detail.metadata) {
    if (texts) (*info.mutable_metadata())[key] = Shortened(value, max_text_bytes);
  }
  Pack(info, "ErrorInfo", status);
  if (detail.retry_delay_ms > 0) {
    rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(detail.retry_delay_ms / 1000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int>(detail.retry_delay_ms % 1000) *
                                           1'000'000);
    Pack(retry, "RetryInfo", status);
  }
  return status.SerializeAsString();
}

absl::Status InStream(const absl::Status& status, int64_t rows_before) {
  std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return status;
  const auto row = detail->metadata.find("row");
  int64_t in_block = 0;
  if (row == detail->metadata.end() || !absl::SimpleAtoi(row->second, &in_block)) return status;
  const std::string in_stream = absl::StrCat(rows_before + in_block);
  detail->metadata["stream_row"] = in_stream;
  absl::string_view message = status.message();
  absl::ConsumePrefix(&message, absl::StrCat(detail->field, ": "));  // MakeError puts it back
  return MakeError(status.code(), detail->reason, detail->field,
                   absl::StrCat("row ", in_stream, " of the stream: ", message),
                   std::move(detail->metadata), detail->retry_delay_ms);
}

absl::Status FromRequestRoot(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value() || absl::StartsWith(detail->field, "examples") ||
      absl::StartsWith(detail->field, "spec.")) {
    return status;
  }
  return WithFieldPrefix(status, "spec.");
}

std::string Shortened(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "…");
}

}  // namespace phimap
