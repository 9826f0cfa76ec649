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

// NOT_FOUND.
absl::Status NoSuchMapping(absl::string_view mapping);
// Without a number: the mapping has no version at all.
absl::Status NoSuchVersion(absl::string_view mapping, std::optional<int64_t> number);
// Field "reference": no version's digest begins so.
absl::Status NoSuchDigest(absl::string_view mapping, absl::string_view digest);
// INVALID_ARGUMENT, field "reference": several digests begin so. `candidates` are some of them as
// references, and whether there are more.
absl::Status AmbiguousDigest(absl::string_view mapping, absl::string_view digest,
                             const std::vector<std::string>& candidates, bool more);
// `field` is the request's field: "reference" or "alias".
absl::Status NoSuchAlias(absl::string_view mapping, absl::string_view alias,
                         absl::string_view field);

// ABORTED; `current` is null when the alias does not exist.
absl::Status EtagMismatch(absl::string_view mapping, absl::string_view alias,
                          absl::string_view expected, const AliasRecord* current);
// FAILED_PRECONDITION, naming the aliases. Without a number: the whole mapping.
absl::Status InUse(absl::string_view mapping, std::optional<int64_t> number,
                   const std::vector<AliasRecord>& aliases);
// FAILED_PRECONDITION: a mapping to be deleted only without versions has some.
absl::Status NotEmpty(absl::string_view mapping, int64_t versions);
// FAILED_PRECONDITION, naming the aliases that a rollback would bring back to the version.
absl::Status RolledBackTo(absl::string_view mapping, int64_t number,
                          const std::vector<AliasRecord>& aliases);
// UNAVAILABLE: collected as garbage between being written and being named.
absl::Status ArtifactRemoved(absl::string_view digest);
bool IsArtifactRemoved(const absl::Status& status);
// RESOURCE_EXHAUSTED.
absl::Status TooManyAliases(absl::string_view mapping);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_CATALOG_ERRORS_H_
