// The variance of a number at a row, by the Gaussian process whose mean is ridge's answer
// (Rasmussen, Williams 2006, section 2.3, in the form of Nyström features with their residual:
// Snelson, Ghahramani 2006; Quiñonero-Candela, Rasmussen 2005, section 6).
#ifndef PHIMAP_CORE_HEAD_HEAD_VARIANCE_H_
#define PHIMAP_CORE_HEAD_HEAD_VARIANCE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/head/head.h"
#include "core/linalg/matrix.h"
#include "core/linalg/panel_product.h"

namespace phimap {

// Computes HeadVariance at rows. Immutable; thread-safe.
class VarianceFunction {
 public:
  // Packs R⁻¹. REQUIRES: d(d + 1)/2 numbers for some d >= 1; finite numbers.
  explicit VarianceFunction(const HeadVariance& variance);

  // d.
  int64_t features() const { return inverse_factor_.depth(); }
  int64_t memory_bytes() const { return inverse_factor_.memory_bytes(); }
  // What an observation varies by around the function's value: scale·noise.
  double observation_variance() const { return scale_ * noise_; }

  // Sets variances[i] to scale·(residuals[i] + noise·‖F_i·R⁻¹‖²), the variance of the function at
  // row i in squared units of the target. `residuals` are ρ as served (core/plan/residual.h), at
  // least 0: without them the variance would vanish far from the landmarks, where it is greatest.
  //
  // Shapes: features n×features(), T float or double. Allocates 64 rows of float64. Calls no BLAS;
  // the bits of a row do not depend on the others. Cost: d² flops a row.
  template <typename T>
  void Compute(ConstMatrixView<T> features, absl::Span<const double> residuals,
               absl::Span<double> variances) const;

 private:
  double noise_;
  double scale_;
  PanelMatrix<double> inverse_factor_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_HEAD_HEAD_VARIANCE_H_
