#include "server/mapping/request_fields.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/mapping/spec/family.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/calls/specs.h"
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
      absl::StatusCode::kInvalidArgument, reason::kFieldInvalid, field,
      absl::StrCat("expected a UUID, 8-4-4-4-12 hexadecimal digits, got ", Quoted(got)));
}

}  // namespace

absl::StatusOr<BuildId> BuildIdFromProto(absl::string_view name, absl::string_view build_id,
                                         absl::string_view prefix) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(name, absl::StrCat(prefix, "name")));
  if (!IsUuid(build_id)) return NoUuid(absl::StrCat(prefix, "build_id"), build_id);
  return BuildId{std::string(name), absl::AsciiStrToLower(build_id)};
}

absl::Status CheckNoneRemoved(const google::protobuf::Message& message, absl::string_view field,
                              absl::string_view instead) {
  const google::protobuf::UnknownFieldSet& unknown =
      message.GetReflection()->GetUnknownFields(message);
  if (unknown.empty()) return absl::OkStatus();
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  std::vector<std::string> removed;
  for (int i = 0; i < type.reserved_name_count(); ++i) removed.push_back(type.reserved_name(i));
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kFieldRemoved, field,
      absl::StrCat("API 0.2 has no field ", unknown.field(0).number(), " of ", type.name(),
                   "; the removed fields are ", absl::StrJoin(removed, ", "), "; ", instead));
}

absl::StatusOr<Reference> FixedReference(const google::protobuf::Message& request,
                                         absl::string_view reference) {
  constexpr absl::string_view kExpected =
      "\"name@7\" or \"name@sha256:\" followed by the version's digest";
  if (reference.empty()) {
    PHIMAP_RETURN_IF_ERROR(
        CheckNoneRemoved(request, "reference", absl::StrCat("send `reference`, ", kExpected)));
  }
  const absl::StatusOr<Reference> parsed = ParseReference(reference);
  if (parsed.ok() && (parsed->number.has_value() || !parsed->digest.empty())) return parsed;
  const std::string because =
      parsed.ok() ? absl::StrCat(", because ", parsed->alias.empty() ? "a name alone" : "an alias",
                                 " can mean another version when the request arrives")
                  : "";
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kReferenceInvalid, "reference",
                   absl::StrCat("expected ", kExpected, because, "; got ", Quoted(reference)));
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
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldOutOfRange, field,
                   absl::StrCat("expected ", least, " to ", largest,
                                " seconds (one minute to 36,500 days), or unset for no end; got ",
                                CountOf(absl::ToInt64Seconds(given), "second")),
                   {{"minimum", absl::StrCat(least)},
                    {"maximum", absl::StrCat(largest)},
                    {"actual", absl::StrCat(absl::ToInt64Seconds(given))}});
}

absl::StatusOr<absl::Time> TimeFromProto(const google::protobuf::Timestamp& time,
                                         absl::string_view field) {
  constexpr int64_t kLeast = -62'135'596'800;    // 0001-01-01T00:00:00Z
  constexpr int64_t kLargest = 253'402'300'799;  // 9999-12-31T23:59:59Z
  if (time.seconds() >= kLeast && time.seconds() <= kLargest && time.nanos() >= 0 &&
      time.nanos() < 1'000'000'000) {
    return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
  }
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldOutOfRange, field,
                   absl::StrCat("expected a time of the years 1 to 9999, got ", time.seconds(),
                                " seconds since 1970 and ", time.nanos(), " nanoseconds"),
                   {{"minimum", absl::StrCat(kLeast)},
                    {"maximum", absl::StrCat(kLargest)},
                    {"actual", absl::StrCat(time.seconds())}});
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
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kPageTokenInvalid, "page_token",
                   "expected the next_page_token of the previous page of this list");
}

absl::StatusOr<int> PageSize(int requested) {
  if (requested < 0) {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldOutOfRange, "page_size",
                     absl::StrCat("expected 0..", kMaxPageSize, ", got ", requested),
                     {{"actual", absl::StrCat(requested)}, {"limit", absl::StrCat(kMaxPageSize)}});
  }
  return requested == 0 ? kDefaultPageSize : std::min(requested, kMaxPageSize);
}

namespace {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // spec_0_1 is deprecated for clients
// Returns the text of the spec, which a client of 0.1 sends in a message of its own.
absl::StatusOr<std::string> SpecTextOf(const v1::BuildSpec& fields, absl::string_view prefix) {
  if (!fields.has_spec_0_1()) return fields.spec();
  if (!fields.spec().empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldsContradictory,
                     absl::StrCat(prefix, "spec_0_1"),
                     "expected one of spec and spec_0_1, got both");
  }
  PHIMAP_RETURN_IF_ERROR(CheckNoneRemoved(
      fields.spec_0_1(), absl::StrCat(prefix, "spec_0_1"),
      absl::StrCat("send the spec as a text, such as \"", DefaultFamily().name,
                   "(landmarks=500)\", in the field `spec`, or in `text` from a client of 0.1")));
  return fields.spec_0_1().text();
}
#pragma GCC diagnostic pop

}  // namespace

absl::StatusOr<BuildSpec> BuildSpecFromProto(const v1::BuildSpec& fields,
                                             absl::string_view prefix) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string text, SpecTextOf(fields, prefix));
  return BuildSpecFromText(text, fields, prefix);
}

}  // namespace phimap
