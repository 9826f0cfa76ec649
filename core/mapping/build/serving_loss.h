// Measures what serving in float32 costs a learner.
#ifndef PHIMAP_CORE_MAPPING_BUILD_SERVING_LOSS_H_
#define PHIMAP_CORE_MAPPING_BUILD_SERVING_LOSS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
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
// The largest distance at λ = 10⁻⁶ between plans for the two types at which float32 is chosen, as
// large as that of a good version (verdict.h). A learner that tunes its λ and has many rows uses
// such directions: eigenvalues grow with the number of rows, so that λ = 10⁻⁴ and 30,000 rows are
// to each of them what 10⁻⁶ is to the few rows that are compared.
inline constexpr double kMaxTunedServingDistance = 0.1;
inline constexpr double kTunedServingLambda = 1e-6;

// What the rank tolerance of float32 costs.
struct RankLoss {
  // Distance between the mapping, which was built for float32, and one that is built for float64
  // from the same landmarks, on held-out rows.
  double distance = 0;
  // The distance of the same two mappings at kTunedServingLambda.
  double tuned_distance = 0;
  // The kernel's dimensions on the landmarks, if these are few and float32 does not keep them all.
  std::optional<int64_t> kernel_rank;

  // Whether a learner would lose too much. NaN counts as too much, and so does a part of a kernel
  // of few dimensions: that float64 keeps it whole costs little, and learners whose labels depend
  // on columns that vary little need it.
  bool too_much() const {
    return kernel_rank.has_value() || !(distance <= kMaxServingDistance) ||
           !(tuned_distance <= kMaxTunedServingDistance);
  }
};

// Measures the loss; nothing is lost if the mapping was built for float64 or kept every rank that
// float64 would keep. REQUIRES: at least kMinHeldOutRows held-out rows.
//
// Cost: for F2 and F3, which know what a build for float64 would add (FactorTail), the coordinates
// of kMaxFidelityRows rows and two of their Gram matrices; for other mappings, a whole build.
// Errors: those of the builder and of `progress`.
absl::StatusOr<RankLoss> MeasureRankLoss(const BuildSpec& spec, const BuildKernel& kernel,
                                         const BuiltMapping& mapping, BuildProgress& progress);

// Adds the loss to serving_distance and sets kernel_rank of the certificate, if it has a
// serving_distance. By the triangle inequality, the sum bounds the distance between the features as
// served and those of a build for float64, up to the norms that distances are relative to.
void AddRankLoss(const RankLoss& loss, Certificate& certificate);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_SERVING_LOSS_H_
