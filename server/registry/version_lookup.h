// Looks up in the store which version a reference means now.
#ifndef PHIMAP_SERVER_REGISTRY_VERSION_LOOKUP_H_
#define PHIMAP_SERVER_REGISTRY_VERSION_LOOKUP_H_

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "core/status/error.h"
#include "server/registry/reference.h"
#include "server/store/store.h"

namespace phimap {

// Blocking. Errors: those of the store, and NOT_FOUND for an unknown mapping, version, digest or
// alias, with the field "reference" unless the mapping is unknown.
inline absl::StatusOr<VersionRecord> LookUpVersion(Store& store, const Reference& reference) {
  if (!reference.alias.empty()) return store.GetAliasedVersion(reference.mapping, reference.alias);
  if (!reference.digest.empty()) {
    return store.GetVersionByDigest(reference.mapping, reference.digest);
  }
  absl::StatusOr<VersionRecord> found = store.GetVersion(reference.mapping, reference.number);
  if (found.ok() || !reference.number.has_value()) return found;
  std::optional<ErrorDetail> detail = DetailOf(found.status());
  if (!detail.has_value() || detail->reason != "VERSION_NOT_FOUND") return found;
  // The store does not know which field a number came from.
  return MakeError(found.status().code(), detail->reason, "reference", found.status().message(),
                   std::move(detail->metadata));
}

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_VERSION_LOOKUP_H_
