// References to versions: "name" (the newest), "name@7", "name@alias", "name@sha256:digest"; and
// the names in them.
#ifndef PHIMAP_SERVER_REGISTRY_REFERENCE_H_
#define PHIMAP_SERVER_REGISTRY_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

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

// INVALID_ARGUMENT (reason REFERENCE_INVALID, field "reference") for anything else.
absl::StatusOr<Reference> ParseReference(absl::string_view text);

// [a-z]([a-z0-9-]{0,61}[a-z0-9])?
bool IsMappingName(absl::string_view text);
// [a-z][a-z0-9-]{0,62}
bool IsAliasName(absl::string_view text);

// OK for a mapping's or an alias's name; INVALID_ARGUMENT (reason NAME_INVALID) names `field`
// otherwise.
absl::Status CheckMappingName(absl::string_view text, absl::string_view field);
absl::Status CheckAliasName(absl::string_view text, absl::string_view field);
// OK for the first digits of a digest; INVALID_ARGUMENT (reason DIGEST_INVALID) names `field`
// otherwise.
absl::Status CheckDigest(absl::string_view text, absl::string_view field);
// OK from 1 on; INVALID_ARGUMENT (reason FIELD_OUT_OF_RANGE) names `field` otherwise.
absl::Status CheckVersionNumber(int64_t number, absl::string_view field);

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_REFERENCE_H_
