// Makes the certificate of a mapping that was just built.
#ifndef PHIMAP_CORE_MAPPING_BUILD_CERTIFICATION_H_
#define PHIMAP_CORE_MAPPING_BUILD_CERTIFICATION_H_

#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "core/mapping/build/build_progress.h"
#include "core/mapping/build/kernel_access.h"
#include "core/mapping/builder_parts/built_mapping.h"
#include "core/mapping/sample/build_sample.h"
#include "core/mapping/spec/build_spec.h"

namespace phimap {

// The inputs from which the mapping was built.
struct CertificationTask {
  const BuildSpec& spec;
  const BuildSample& sample;
  const KernelAccess& kernel;
  // The task that the mapping's builder received.
  const LandmarkTask& built_of;
};

// Makes all measurements and statements of the certificate. Reports to BuildStep::kSpectrum and
// kMeasurement. Errors: those of MeasureSpectrum, except FAILED_PRECONDITION, which leaves the
// spectrum absent; those of MeasureHeldOut. May change the reference plan of `mapping`, and sets
// mapping.held_out_features.
absl::StatusOr<Certificate> Certify(const CertificationTask& task, BuiltMapping& mapping,
                                    BuildProgress& progress);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_CERTIFICATION_H_
