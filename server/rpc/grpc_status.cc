#include "server/rpc/grpc_status.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "core/status/error.h"
#include "google/protobuf/any.pb.h"
#include "phimap/rpc/error_details.pb.h"

namespace phimap {
namespace {

constexpr size_t kMaxMessageBytes = 2048;
constexpr char kDomain[] = "phimap";
// Of an error's facts: a file of the server.
constexpr char kPath[] = "path";

// Cut between characters: half a UTF-8 sequence is not a proto string.
std::string Shortened(absl::string_view text) {
  if (text.size() <= kMaxMessageBytes) return std::string(text);
  size_t end = kMaxMessageBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "…");
}

void Pack(const google::protobuf::Message& detail, const char* name, rpc::Status& status) {
  google::protobuf::Any& any = *status.add_details();
  any.set_type_url(absl::StrCat("type.googleapis.com/google.rpc.", name));
  detail.SerializeToString(any.mutable_value());
}

void AddDetails(const ErrorDetail& detail, rpc::Status& status) {
  if (!detail.field.empty()) {
    rpc::BadRequest bad_request;
    auto& violation = *bad_request.add_field_violations();
    violation.set_field(detail.field);
    violation.set_description(
        std::string(absl::StripPrefix(status.message(), absl::StrCat(detail.field, ": "))));
    Pack(bad_request, "BadRequest", status);
  }
  rpc::ErrorInfo info;
  info.set_reason(detail.reason);
  info.set_domain(kDomain);
  for (const auto& [key, value] : detail.metadata) {
    if (key == kPath) continue;
    (*info.mutable_metadata())[key] = Shortened(value);
  }
  Pack(info, "ErrorInfo", status);
  if (detail.retry_delay_ms > 0) {
    rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(detail.retry_delay_ms / 1000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int>(detail.retry_delay_ms % 1000) *
                                           1'000'000);
    Pack(retry, "RetryInfo", status);
  }
}

}  // namespace

std::string MessageForClient(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return std::string(status.message());
  const auto path = detail->metadata.find(kPath);
  if (path == detail->metadata.end() || path->second.empty()) return std::string(status.message());
  return absl::StrReplaceAll(status.message(), {{path->second, "a file of the store"}});
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  // The canonical codes have the same numbers on both sides.
  const auto code = static_cast<grpc::StatusCode>(status.code());
  const std::string message = Shortened(MessageForClient(status));
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return grpc::Status(code, message);
  rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(message);
  AddDetails(*detail, details);
  return grpc::Status(code, message, details.SerializeAsString());
}

}  // namespace phimap
