// Measures what serving in float32 costs a learner.
#ifndef PHIMAP_CORE_MAPPING_BUILD_SERVING_LOSS_H_
#define PHIMAP_CORE_MAPPING_BUILD_SERVING_LOSS_H_

#include "absl/status/status.h"
#include "core/certificate/certificate.h"
#include "core/mapping/build/build_kernel.h"
#include "core/mapping/build/build_progress.h"
#include "core/mapping/builder/built_mapping.h"
#include "core/mapping/spec/build_spec.h"

namespace phimap {

// The largest serving_distance of a certificate at which a version is served in float32 unless the
// spec asks for a type. The distance compares smoothers at λ = 10⁻², so a learner regularized that
// much predicts alike from both types: within this share, whatever the labels.
inline constexpr double kMaxServingDistance = 0.02;

// Adds to serving_distance of the certificate what the rank tolerance of float32 costs: the
// distance between the mapping, which was built for float32, and one that is built for float64 from
// the same landmarks, on held-out rows. By the triangle inequality, the sum bounds the distance
// between the features as served and those of a build for float64, up to the norms that distances
// are relative to. Does nothing if no rank was lost or nothing was measured.
//
// Cost: for F2 and F3, which know what a build for float64 would add (FactorTail), the coordinates
// of kMaxFidelityRows rows and two of their Gram matrices; for other mappings, a whole build. Also
// sets kernel_rank, if the kernel has more dimensions than float32 keeps. Errors: those of the
// builder and of `progress`.
absl::Status AddRankLoss(const BuildSpec& spec, const BuildKernel& kernel,
                         const BuiltMapping& mapping, BuildProgress& progress,
                         Certificate& certificate);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_SERVING_LOSS_H_
