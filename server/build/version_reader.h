// Reads a stored version with its certificate, for display.
#ifndef PHIMAP_SERVER_BUILD_VERSION_READER_H_
#define PHIMAP_SERVER_BUILD_VERSION_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "core/head/head.h"
#include "server/admission/memory_budget.h"
#include "server/registry/reference.h"
#include "server/registry/version_registry.h"
#include "server/store/store.h"

namespace phimap {

struct CertifiedVersion {
  VersionRecord record;
  Certificate certificate;
  // Values from the spec that the version was built from.
  bool standardize = false;
  uint64_t seed = 0;
  std::vector<std::string> column_names = {};
  // What is known of the head, without its weights; null for a version without a head.
  std::shared_ptr<const HeadFacts> head = nullptr;
};

// Returns the version that `reference` means now. A live version is not read again. For any other
// version, only the returned parts are read, usually some KiB, so damage in its plan is not
// noticed. A certificate of 1 MiB or more is charged to `memory` while it is read and decoded,
// unless `memory` is null. Blocking. Errors: those of the store and of `memory`; DATA_LOSS if the
// data read is damaged.
absl::StatusOr<CertifiedVersion> ReadCertifiedVersion(Store& store, VersionRegistry& registry,
                                                      const Reference& reference,
                                                      MemoryBudget* memory = nullptr);

}  // namespace phimap

#endif  // PHIMAP_SERVER_BUILD_VERSION_READER_H_
