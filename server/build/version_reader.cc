#include "server/build/version_reader.h"

#include <string>
#include <utility>

#include "core/plan/artifact.h"
#include "core/status/status_macros.h"
#include "server/registry/version_lookup.h"

namespace phimap {

absl::StatusOr<CertifiedVersion> ReadCertifiedVersion(Store& store, VersionRegistry& registry,
                                                      const Reference& reference) {
  CertifiedVersion version;
  PHIMAP_ASSIGN_OR_RETURN(version.record, LookUpVersion(store, reference));
  const VersionHandle live = registry.FindLive(reference.mapping, version.record.number);
  if (live) {
    PHIMAP_ASSIGN_OR_RETURN(version.certificate, DecodeCertificate(live.certificate()));
    version.standardize = live.standardize();
    version.seed = live.seed();
    return version;
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::string bytes, store.ReadArtifact(version.record.digest));
  PHIMAP_ASSIGN_OR_RETURN(const Artifact artifact, DecodeArtifact(bytes));
  PHIMAP_ASSIGN_OR_RETURN(version.certificate, DecodeCertificate(artifact.certificate));
  version.standardize = artifact.provenance.standardize;
  version.seed = artifact.provenance.seed;
  return version;
}

}  // namespace phimap
