#include "server/build/version_reader.h"

#include <string>
#include <utility>

#include "core/plan/artifact.h"
#include "core/status/status_macros.h"

namespace phimap {

absl::StatusOr<CertifiedVersion> ReadCertifiedVersion(Store& store, VersionRegistry& registry,
                                                      absl::string_view mapping,
                                                      std::optional<int64_t> number) {
  CertifiedVersion version;
  PHIMAP_ASSIGN_OR_RETURN(version.record, store.GetVersion(mapping, number));
  if (const VersionHandle live = registry.FindLive(mapping, version.record.number)) {
    PHIMAP_ASSIGN_OR_RETURN(version.certificate, DecodeCertificate(live.certificate()));
    return version;
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::string bytes, store.ReadArtifact(version.record.digest));
  PHIMAP_ASSIGN_OR_RETURN(const Artifact artifact, DecodeArtifact(bytes));
  PHIMAP_ASSIGN_OR_RETURN(version.certificate, DecodeCertificate(artifact.certificate));
  return version;
}

}  // namespace phimap
