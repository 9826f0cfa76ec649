// A stored version with its certificate, as people want to see it.
#ifndef PHIMAP_SERVER_BUILD_VERSION_READER_H_
#define PHIMAP_SERVER_BUILD_VERSION_READER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "server/registry/reference.h"
#include "server/registry/version_registry.h"
#include "server/store/store.h"

namespace phimap {

struct CertifiedVersion {
  VersionRecord record;
  Certificate certificate;
  // As in the spec that it was built from.
  bool standardize = false;
  uint64_t seed = 0;
};

// The version that `reference` means now. A version that is live is not read again; any other
// artifact is read and checked, and not loaded. Blocking. Errors: those of the store; DATA_LOSS for
// a damaged artifact.
absl::StatusOr<CertifiedVersion> ReadCertifiedVersion(Store& store, VersionRegistry& registry,
                                                      const Reference& reference);

}  // namespace phimap

#endif  // PHIMAP_SERVER_BUILD_VERSION_READER_H_
