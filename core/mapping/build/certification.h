// The certificate of a mapping that was just built: all its measurements and statements.
#ifndef PHIMAP_CORE_MAPPING_BUILD_CERTIFICATION_H_
#define PHIMAP_CORE_MAPPING_BUILD_CERTIFICATION_H_

#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "core/mapping/build/build_kernel.h"
#include "core/mapping/build/build_progress.h"
#include "core/mapping/builder/built_mapping.h"
#include "core/mapping/sample/build_sample.h"
#include "core/mapping/spec/build_spec.h"

namespace phimap {

// A mapping's inputs.
struct CertificationTask {
  const BuildSpec& spec;
  const BuildSample& sample;
  const BuildKernel& kernel;
  // Input of its builder.
  const LandmarkTask& built_of;
};

// Reports to BuildStep::kSpectrum and kMeasurement. Errors: MeasureSpectrum's except
// FAILED_PRECONDITION, which means that there is no spectrum; MeasureHeldOut's. The reference plan
// of `mapping` may be changed by it.
absl::StatusOr<Certificate> Certify(const CertificationTask& task, BuiltMapping& mapping,
                                    BuildProgress& progress);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_CERTIFICATION_H_
