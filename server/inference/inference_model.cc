#include "server/inference/inference_model.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/registry/reference.h"

namespace phimap {

absl::StatusOr<std::string> ReferenceToModel(absl::string_view name, absl::string_view version,
                                             const ModelFields& fields) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(name, fields.name));
  if (version.empty()) return std::string(name);
  std::string reference = absl::StrCat(name, "@", version);
  if (ParseReference(reference).ok()) return reference;
  return MakeError(
      absl::StatusCode::kInvalidArgument, "VERSION_INVALID", fields.version,
      absl::StrCat(
          "expected a number such as \"7\", an alias such as \"prod\", \"sha256:\" followed by "
          "the digits of a digest, or nothing for the newest version; got ",
          Quoted(version)));
}

absl::Status InModelFields(const absl::Status& status, const ModelFields& fields) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value() || detail->field != "reference") return status;
  return WithField(status, fields.version);
}

absl::StatusOr<VersionRecord> FindModel(Store& store, absl::string_view name,
                                        absl::string_view version) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string text, ReferenceToModel(name, version, kModelAskedFor));
  PHIMAP_ASSIGN_OR_RETURN(const Reference reference, ParseReference(text));
  absl::StatusOr<VersionRecord> found = LookUpVersion(store, reference);
  if (!found.ok()) return InModelFields(found.status(), kModelAskedFor);
  return found;
}

}  // namespace phimap
