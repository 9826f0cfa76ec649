// Makes whole artifacts: a plan of random numbers with a provenance, a certificate and reference
// vectors.
#ifndef PHIMAP_TESTS_SUPPORT_CERTIFIED_ARTIFACT_H_
#define PHIMAP_TESTS_SUPPORT_CERTIFIED_ARTIFACT_H_

#include <functional>
#include <string>

#include "core/certificate/certificate.h"
#include "core/plan/artifact.h"
#include "tests/support/plans.h"

namespace phimap::testing {

// Changes that a test makes to the provenance and the certificate before the artifact is encoded.
struct ArtifactEdits {
  std::function<void(Provenance&)> provenance;
  std::function<void(Certificate&)> certificate;
};

// Returns an encoded artifact. Its reference vectors are two rows and the features that the engine
// of this machine computes for them.
std::string CertifiedArtifact(const PlanShape& shape = {}, const ArtifactEdits& edits = {});

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_CERTIFIED_ARTIFACT_H_
