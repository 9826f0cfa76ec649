#include "core/status/error.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/check.h"

namespace phimap {
namespace {

constexpr char kPayloadUrl[] = "phimap/error-detail";
// Its payload is the remedy at the end of the message.
constexpr char kRemedyUrl[] = "phimap/error-remedy";
constexpr absl::string_view kBeforeRemedy = "; ";

// Encodes the parts of an error as one string: reason, field, retry delay, then each key followed
// by its value. Each part is encoded as "length:bytes", because a value may quote what a caller
// sent, so that no byte can serve as a separator. The encoding needs no version number, because it
// never leaves the process.
std::string Encode(const ErrorDetail& detail) {
  std::string out;
  const auto append = [&](absl::string_view part) {
    absl::StrAppend(&out, part.size(), ":", part);
  };
  append(detail.reason);
  append(detail.field);
  append(absl::StrCat(detail.retry_delay_ms));
  for (const auto& [key, value] : detail.metadata) {
    append(key);
    append(value);
  }
  return out;
}

std::vector<std::string> Parts(absl::string_view bytes) {
  std::vector<std::string> parts;
  while (!bytes.empty()) {
    const size_t colon = bytes.find(':');
    size_t length = 0;
    PHIMAP_CHECK(colon != bytes.npos && absl::SimpleAtoi(bytes.substr(0, colon), &length));
    PHIMAP_CHECK(length <= bytes.size() - colon - 1);
    parts.emplace_back(bytes.substr(colon + 1, length));
    bytes.remove_prefix(colon + 1 + length);
  }
  return parts;
}

}  // namespace

absl::Status MakeError(absl::StatusCode code, absl::string_view reason, absl::string_view field,
                       absl::string_view message, std::map<std::string, std::string> metadata,
                       int64_t retry_delay_ms) {
  PHIMAP_CHECK(code != absl::StatusCode::kOk);
  absl::Status status(code,
                      field.empty() ? std::string(message) : absl::StrCat(field, ": ", message));
  status.SetPayload(kPayloadUrl, absl::Cord(Encode({std::string(reason), std::string(field),
                                                    std::move(metadata), retry_delay_ms})));
  return status;
}

absl::Status WithRemedy(absl::Status problem, absl::string_view remedy) {
  PHIMAP_CHECK(!problem.ok());
  absl::Status status(problem.code(), absl::StrCat(problem.message(), kBeforeRemedy, remedy));
  problem.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { status.SetPayload(url, payload); });
  status.SetPayload(kRemedyUrl, absl::Cord(remedy));
  return status;
}

absl::string_view ProblemOf(const absl::Status& status) {
  const absl::string_view message = status.message();
  const absl::optional<absl::Cord> remedy = status.GetPayload(kRemedyUrl);
  if (!remedy.has_value()) return message;
  return message.substr(0, message.size() - kBeforeRemedy.size() - remedy->size());
}

absl::string_view WithoutField(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  const size_t field = detail.has_value() ? detail->field.size() : 0;
  return status.message().substr(field == 0 ? 0 : field + 2);
}

std::optional<ErrorDetail> DetailOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return std::nullopt;
  const std::string bytes(*payload);
  const std::vector<std::string> parts = Parts(bytes);
  PHIMAP_CHECK(parts.size() >= 3 && parts.size() % 2 == 1);
  ErrorDetail detail{.reason = parts[0], .field = parts[1], .metadata = {}, .retry_delay_ms = 0};
  PHIMAP_CHECK(absl::SimpleAtoi(parts[2], &detail.retry_delay_ms));
  for (size_t i = 3; i < parts.size(); i += 2) detail.metadata[parts[i]] = parts[i + 1];
  return detail;
}

absl::Status WithFieldPrefix(const absl::Status& status, absl::string_view prefix) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return status;
  return WithField(status, absl::StrCat(prefix, detail->field));
}

absl::Status WithField(const absl::Status& status, absl::string_view field) {
  std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value() || detail->field.empty()) return status;
  return MakeError(status.code(), detail->reason, field, WithoutField(status),
                   std::move(detail->metadata), detail->retry_delay_ms);
}

namespace {

// Returns the length in bytes of a UTF-8 character that begins with `first`; 0 if none does.
size_t Utf8Length(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if ((first & 0xF0) == 0xE0) return 3;
  if (first >= 0xF0 && first <= 0xF4) return 4;
  return 0;
}

// Whether `text` is UTF-8 as protobuf demands it of a string: no overlong forms, no surrogates.
bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const size_t length = Utf8Length(first);
    if (length == 0 || text.size() < length) return false;
    for (size_t i = 1; i < length; ++i) {
      if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return false;
    }
    const unsigned char second = length > 2 ? static_cast<unsigned char>(text[1]) : 0x80;
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
        (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

std::string Excerpt(absl::string_view text) {
  constexpr size_t kShown = 100;
  size_t end = std::min(text.size(), kShown);
  // Does not cut within a character, so that UTF-8 text stays UTF-8.
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  const absl::string_view shown = text.substr(0, end);
  return absl::StrCat(IsUtf8(shown) ? absl::Utf8SafeCHexEscape(shown) : absl::CHexEscape(shown),
                      end < text.size() ? "…" : "");
}

std::string Quoted(absl::string_view text) { return absl::StrCat("\"", Excerpt(text), "\""); }

std::string Alternatives(absl::Span<const absl::string_view> names) {
  PHIMAP_CHECK(!names.empty());
  const auto first = names.first(names.size() - 1);
  return absl::StrCat(absl::StrJoin(first, ", "), first.empty() ? "" : " or ", names.back());
}

std::string Alternatives(absl::Span<const std::string> names) {
  return Alternatives(std::vector<absl::string_view>(names.begin(), names.end()));
}

}  // namespace phimap
