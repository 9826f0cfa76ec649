// Errors about names that the catalog does not know, or may not remove.
#ifndef PHIMAP_SERVER_STORE_CATALOG_ERRORS_H_
#define PHIMAP_SERVER_STORE_CATALOG_ERRORS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/store/store.h"

namespace phimap {

// NOT_FOUND: no mapping has this name.
absl::Status NoSuchMapping(absl::string_view mapping);
// NOT_FOUND. Without a number, the error says that the mapping has no version at all.
absl::Status NoSuchVersion(absl::string_view mapping, std::optional<int64_t> number);
// NOT_FOUND, field "reference": no version has a digest that begins with these digits.
absl::Status NoSuchDigest(absl::string_view mapping, absl::string_view digest);
// INVALID_ARGUMENT, field "reference": several digests begin with these digits. `candidates` are
// references to some of these versions; `more` says whether there are others.
absl::Status AmbiguousDigest(absl::string_view mapping, absl::string_view digest,
                             const std::vector<std::string>& candidates, bool more);
// NOT_FOUND. `field` is the request's field: "reference" or "alias".
absl::Status NoSuchAlias(absl::string_view mapping, absl::string_view alias,
                         absl::string_view field);

// ABORTED. `current` is null if the alias does not exist.
absl::Status EtagMismatch(absl::string_view mapping, absl::string_view alias,
                          absl::string_view expected, const AliasRecord* current);
// FAILED_PRECONDITION, naming the aliases that point at the version or, without a number, at any
// version of the mapping.
absl::Status InUse(absl::string_view mapping, std::optional<int64_t> number,
                   const std::vector<AliasRecord>& aliases);
// FAILED_PRECONDITION: the request deletes the mapping only if it has no versions, but it has
// `versions` versions.
absl::Status NotEmpty(absl::string_view mapping, int64_t versions);
// FAILED_PRECONDITION, naming the aliases that a rollback would bring back to the version.
absl::Status RolledBackTo(absl::string_view mapping, int64_t number,
                          const std::vector<AliasRecord>& aliases);
// UNAVAILABLE: the artifact was collected as garbage after it was written and before a version
// referred to it.
absl::Status ArtifactRemoved(absl::string_view digest);
bool IsArtifactRemoved(const absl::Status& status);
// RESOURCE_EXHAUSTED: the mapping already has kMaxAliases aliases.
absl::Status TooManyAliases(absl::string_view mapping);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_CATALOG_ERRORS_H_
