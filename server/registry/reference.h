// References to versions: "name" (the newest), "name@7", "name@alias", "name@sha256:digest". Also
// checks the names and numbers in them.
#ifndef PHIMAP_SERVER_REGISTRY_REFERENCE_H_
#define PHIMAP_SERVER_REGISTRY_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/records.h"

namespace phimap {

class Call;
class Store;

// Points into the text it was parsed from.
struct Reference {
  absl::string_view mapping;
  // At most one of the following is set; if none is, the newest version is meant.
  std::optional<int64_t> number;
  absl::string_view alias;
  // A prefix of a version's digest, of at least kLeastDigestDigits digits.
  absl::string_view digest;
};

inline constexpr size_t kLeastDigestDigits = 7;
inline constexpr size_t kDigestDigits = 64;
// Prefix of a digest in a reference.
inline constexpr absl::string_view kDigestPrefix = "sha256:";

// Parses a reference. Returns INVALID_ARGUMENT (reason REFERENCE_INVALID, field "reference") for
// any other text.
absl::StatusOr<Reference> ParseReference(absl::string_view text);

// Whether `text` matches [a-z]([a-z0-9-]{0,61}[a-z0-9])?.
bool IsMappingName(absl::string_view text);
// Whether `text` matches [a-z][a-z0-9-]{0,62}.
bool IsAliasName(absl::string_view text);

// Return OK for the name of a mapping or an alias, and otherwise INVALID_ARGUMENT (reason
// NAME_INVALID) with `field`.
absl::Status CheckMappingName(absl::string_view text, absl::string_view field);
absl::Status CheckAliasName(absl::string_view text, absl::string_view field);
// OK if the caller of `call` may call its method on the mapping of a reference
// (Call::CheckMapping). Errors of ParseReference only for a caller who is limited to names.
absl::Status CheckReference(Call& call, absl::string_view reference);
// Looks up in the store which version a reference means now. Blocking. Errors: those of the store,
// and NOT_FOUND for an unknown mapping, version, digest or alias, with the field "reference" unless
// the mapping is unknown.
absl::StatusOr<VersionRecord> LookUpVersion(Store& store, const Reference& reference);

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_REFERENCE_H_
