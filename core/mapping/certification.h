// The certificate of a mapping that was just built: everything that is measured and said about it.
#ifndef PHIMAP_CORE_MAPPING_CERTIFICATION_H_
#define PHIMAP_CORE_MAPPING_CERTIFICATION_H_

#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "core/mapping/build_kernel.h"
#include "core/mapping/build_progress.h"
#include "core/mapping/build_sample.h"
#include "core/mapping/build_spec.h"
#include "core/mapping/built_mapping.h"

namespace phimap {

// What a mapping was built of.
struct CertificationTask {
  const BuildSpec& spec;
  const BuildSample& sample;
  const BuildKernel& kernel;
  // What its builder was given.
  const LandmarkTask& built_of;
};

// Reports to BuildStep::kSpectrum and kMeasurement. Errors: MeasureSpectrum's but
// FAILED_PRECONDITION, which means that there is no spectrum; MeasureHeldOut's. The reference plan
// of `mapping` may be changed by it.
absl::StatusOr<Certificate> Certify(const CertificationTask& task, BuiltMapping& mapping,
                                    BuildProgress& progress);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_CERTIFICATION_H_
