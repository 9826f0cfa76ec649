#include "server/rpc/status_trailers.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "core/status/error.h"
#include "google/protobuf/any.pb.h"
#include "phimap/rpc/error_details.pb.h"
#include "server/rpc/metadata.h"

namespace phimap {

namespace {

constexpr size_t kMaxTextBytes = 2048;
constexpr size_t kMaxDetailsBytes = 3072;
// Texts are not cut below this size, because shorter ones say nothing. If the details still do not
// fit, they are sent without texts.
constexpr size_t kMinTextBytes = 64;
constexpr char kDomain[] = "phimap";
// A fact of an error that only the server's log may contain, and the text that replaces it in the
// message for clients. If that text is empty, the message is not changed.
struct PrivateFact {
  const char* key;
  const char* instead;
};
constexpr PrivateFact kPrivateFacts[] = {{"path", "a file of the store"},
                                         {"at", "the store's database failed"},
                                         {"place", "the store's database"},
                                         {"database", ""},
                                         {"host", ""}};

bool IsPrivate(absl::string_view key) {
  return absl::c_any_of(kPrivateFacts, [&](const PrivateFact& fact) { return key == fact.key; });
}

void Pack(const google::protobuf::Message& detail, const char* name, rpc::Status& status) {
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

// Encodes the facts, with each text cut at `max_text_bytes`, or without texts if that is 0.
std::string Details(absl::StatusCode code, absl::string_view message, const ErrorDetail& detail,
                    size_t max_text_bytes) {
  const bool texts = max_text_bytes > 0;
  rpc::Status status;
  status.set_code(static_cast<int>(code));
  if (texts) status.set_message(Shortened(message, max_text_bytes));
  if (texts && !detail.field.empty()) AddBadRequest(detail, message, max_text_bytes, status);
  rpc::ErrorInfo info;
  info.set_reason(detail.reason);
  info.set_domain(kDomain);
  for (const auto& [key, value] : detail.metadata) {
    if (!texts || IsPrivate(key)) continue;
    (*info.mutable_metadata())[key] = Shortened(value, max_text_bytes);
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

constexpr size_t kMaxEncodedBytes = 3072;

// Percent-encoding triples the length of characters outside ASCII, so a text that is within its own
// limit may become too long.
std::string EncodedMessage(const std::string& text) {
  std::string encoded = PercentEncode(text);
  for (size_t bytes = text.size(); encoded.size() > kMaxEncodedBytes;) {
    bytes = bytes * 3 / 4;
    encoded = PercentEncode(Shortened(text, bytes));
  }
  return encoded;
}

}  // namespace

std::string Shortened(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "…");
}

std::string MessageForClient(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return std::string(status.message());
  std::string message(status.message());
  for (const auto& [key, instead] : kPrivateFacts) {
    const auto fact = detail->metadata.find(key);
    if (*instead == '\0' || fact == detail->metadata.end() || fact->second.empty()) continue;
    message = absl::StrReplaceAll(message, {{fact->second, instead}});
  }
  return message;
}

StatusDetails DetailsForClient(const absl::Status& status) {
  if (status.ok()) return {};
  const std::string message = MessageForClient(status);
  StatusDetails shown{.message = Shortened(message, kMaxTextBytes), .details = {}};
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return shown;
  for (size_t bytes = kMaxTextBytes; bytes >= kMinTextBytes; bytes /= 2) {
    shown.details = Details(status.code(), message, *detail, bytes);
    if (shown.details.size() <= kMaxDetailsBytes) return shown;
  }
  shown.details = Details(status.code(), message, *detail, 0);
  return shown;
}

StatusTrailers TrailersOf(const absl::Status& status) {
  const StatusDetails shown = DetailsForClient(status);
  return {.code = static_cast<int>(status.code()),
          .message = EncodedMessage(shown.message),
          .details_bin = EncodeBinaryMetadata(shown.details)};
}

}  // namespace phimap
