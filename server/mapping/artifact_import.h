// One artifact being imported: its bytes as they arrive, and the checks at the end.
//
// The bytes are untrusted. Anything that is not an artifact is rejected after its first
// kArtifactHeadBytes bytes. Memory is reserved for the size that those bytes state, and never for
// more. Nothing is stored before the whole artifact has been reviewed
// (core/certificate/artifact_review.h).
#ifndef PHIMAP_SERVER_MAPPING_ARTIFACT_IMPORT_H_
#define PHIMAP_SERVER_MAPPING_ARTIFACT_IMPORT_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/admission/memory_budget.h"
#include "server/build/version_reader.h"
#include "server/registry/version_registry.h"
#include "server/store/store.h"

namespace phimap {

// Used by one thread at a time.
class ArtifactImport {
 public:
  // `memory` must outlive the import. REQUIRES: IsMappingName(mapping).
  ArtifactImport(std::string mapping, MemoryBudget& memory)
      : mapping_(std::move(mapping)), memory_(memory) {}

  const std::string& mapping() const { return mapping_; }
  int64_t size_bytes() const { return static_cast<int64_t>(bytes_.size()); }

  // Appends the next bytes. INVALID_ARGUMENT (field "chunk") if they are not an artifact, or exceed
  // the size that the artifact states; RESOURCE_EXHAUSTED (reason BUILD_MEMORY_FULL); UNIMPLEMENTED
  // for a newer format.
  absl::Status Append(absl::string_view bytes);

  // Call once, after the last chunk. Compares the bytes with `digest` (DATA_LOSS), reviews them
  // (INVALID_ARGUMENT, field "chunk", and the errors of Engine::Load), stores them and notifies the
  // registry. Blocking, and heavy on the CPU.
  absl::StatusOr<CertifiedVersion> Finish(absl::string_view digest, Store& store,
                                          VersionRegistry& registry, const ChangeOrigin& origin);

 private:
  absl::Status LookAtHead();

  const std::string mapping_;
  MemoryBudget& memory_;
  // Size that the artifact's head states; 0 until the head has arrived.
  int64_t stated_bytes_ = 0;
  MemoryBudget::Reservation reserved_;
  std::string bytes_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_ARTIFACT_IMPORT_H_
