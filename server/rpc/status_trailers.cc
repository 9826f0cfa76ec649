#include "server/rpc/status_trailers.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/status/error.h"
#include "proto/error/request_errors.h"
#include "server/rpc/metadata.h"

namespace phimap {

namespace {

constexpr size_t kMaxTextBytes = 2048;
constexpr size_t kMaxDetailsBytes = 3072;
// Texts are not cut below this size, because shorter ones say nothing. If the details still do not
// fit, they are sent without texts.
constexpr size_t kMinTextBytes = 64;
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
  std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return shown;
  std::erase_if(detail->metadata, [](const auto& fact) { return IsPrivate(fact.first); });
  for (size_t bytes = kMaxTextBytes; bytes >= kMinTextBytes; bytes /= 2) {
    shown.details = EncodedDetails(status.code(), message, *detail, bytes);
    if (shown.details.size() <= kMaxDetailsBytes) return shown;
  }
  shown.details = EncodedDetails(status.code(), message, *detail, 0);
  return shown;
}

StatusTrailers TrailersOf(const absl::Status& status) {
  const StatusDetails shown = DetailsForClient(status);
  return {.code = static_cast<int>(status.code()),
          .message = EncodedMessage(shown.message),
          .details_bin = EncodeBinaryMetadata(shown.details)};
}

}  // namespace phimap
