// From a reference to the version that it means now, as the store says.
#ifndef PHIMAP_SERVER_REGISTRY_VERSION_LOOKUP_H_
#define PHIMAP_SERVER_REGISTRY_VERSION_LOOKUP_H_

#include "absl/status/statusor.h"
#include "server/registry/reference.h"
#include "server/store/store.h"

namespace phimap {

// Blocking. Errors: those of the store, NOT_FOUND for a mapping, version or alias that it does not
// know.
inline absl::StatusOr<VersionRecord> LookUpVersion(Store& store, const Reference& reference) {
  if (!reference.alias.empty()) return store.GetAliasedVersion(reference.mapping, reference.alias);
  return store.GetVersion(reference.mapping, reference.number);
}

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_VERSION_LOOKUP_H_
