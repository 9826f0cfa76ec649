#include "server/mapping/ids_from_proto.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/registry/reference.h"

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

}  // namespace phimap
