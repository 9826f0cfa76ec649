#include "server/mapping/request_fields.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/registry/reference.h"
#include "server/store/records.h"
#include "server/store/sha256.h"

namespace phimap {
namespace {

bool IsUuid(absl::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (hyphen ? text[i] != '-' : !absl::ascii_isxdigit(text[i])) return false;
  }
  return true;
}

absl::Status NoUuid(absl::string_view field, absl::string_view got) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, "FIELD_INVALID", field,
      absl::StrCat("expected a UUID, 8-4-4-4-12 hexadecimal digits, got ", Quoted(got)));
}

}  // namespace

absl::StatusOr<BuildId> BuildIdFromProto(absl::string_view mapping, absl::string_view build_id,
                                         absl::string_view prefix) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(mapping, absl::StrCat(prefix, "mapping")));
  if (!IsUuid(build_id)) return NoUuid(absl::StrCat(prefix, "build_id"), build_id);
  return BuildId{std::string(mapping), absl::AsciiStrToLower(build_id)};
}

absl::StatusOr<std::string> OperationIdOf(absl::string_view operation_id) {
  if (operation_id.empty() || IsUuid(operation_id)) return absl::AsciiStrToLower(operation_id);
  return NoUuid("operation_id", operation_id);
}

absl::StatusOr<absl::Duration> TtlFromProto(const google::protobuf::Duration& ttl,
                                            absl::string_view field) {
  // The store has a resolution of microseconds.
  const absl::Duration given = absl::Trunc(
      absl::Seconds(ttl.seconds()) + absl::Nanoseconds(ttl.nanos()), absl::Microseconds(1));
  if (given >= kLeastTtl && given <= kLargestTtl) return given;
  const int64_t least = absl::ToInt64Seconds(kLeastTtl);
  const int64_t largest = absl::ToInt64Seconds(kLargestTtl);
  return MakeError(absl::StatusCode::kInvalidArgument, "FIELD_OUT_OF_RANGE", field,
                   absl::StrCat("expected ", least, " to ", largest,
                                " seconds (one minute to 36,500 days), or unset for no end; got ",
                                absl::ToInt64Seconds(given), " seconds"),
                   {{"minimum", absl::StrCat(least)},
                    {"maximum", absl::StrCat(largest)},
                    {"actual", absl::StrCat(absl::ToInt64Seconds(given))}});
}

namespace {

constexpr size_t kCheckDigits = 8;
constexpr int kDefaultPageSize = 100;
constexpr int kMaxPageSize = 1000;

// Returns a checksum that detects corrupted tokens. It is not a secret.
std::string Check(absl::string_view list, absl::string_view position) {
  return Sha256Hex(absl::StrCat(list, "\n", position)).substr(0, kCheckDigits);
}

}  // namespace

std::string EncodePageToken(absl::string_view list, absl::string_view position) {
  return absl::WebSafeBase64Escape(absl::StrCat(Check(list, position), position));
}

absl::StatusOr<std::string> DecodePageToken(absl::string_view list, absl::string_view token) {
  std::string text;
  if (absl::WebSafeBase64Unescape(token, &text) && text.size() > kCheckDigits) {
    std::string position = text.substr(kCheckDigits);
    if (text.substr(0, kCheckDigits) == Check(list, position)) return position;
  }
  return MakeError(absl::StatusCode::kInvalidArgument, "PAGE_TOKEN_INVALID", "page_token",
                   "expected the next_page_token of the previous page of this list");
}

absl::StatusOr<int> PageSize(int requested) {
  if (requested < 0) {
    return MakeError(absl::StatusCode::kInvalidArgument, "FIELD_OUT_OF_RANGE", "page_size",
                     absl::StrCat("expected 0..", kMaxPageSize, ", got ", requested),
                     {{"actual", absl::StrCat(requested)}, {"limit", absl::StrCat(kMaxPageSize)}});
  }
  return requested == 0 ? kDefaultPageSize : std::min(requested, kMaxPageSize);
}

}  // namespace phimap
