// Random Fourier features: a feature map whose inner products are unbiased estimates of a kernel
// that depends on x − y (Rahimi, Recht 2007).
#ifndef PHIMAP_CORE_MAPPING_FOURIER_MAPPING_H_
#define PHIMAP_CORE_MAPPING_FOURIER_MAPPING_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_expression.h"
#include "core/linalg/checkpoint.h"
#include "core/mapping/mapping_cost.h"
#include "core/mapping/plan_pair.h"
#include "core/theory/fourier_bounds.h"

namespace phimap {

// factor·exp(−γ‖x−y‖²), or factor·exp(−γ‖x−y‖₁).
struct FourierKernel {
  double factor = 1;
  double gamma = 0;
  bool laplacian = false;
};

// What the expression is, if it is a kernel that Fourier features are made of: c·rbf() or
// c·laplacian(), c > 0 and finite. Before gamma is resolved its number means nothing.
std::optional<FourierKernel> FourierKernelOf(const KernelExpression& kernel);

struct FourierTask {
  FourierKernel kernel;
  FourierForm form = FourierForm::kSinCos;
  // Frequencies that are orthogonal within blocks of as many as there are columns; of rbf() only.
  bool orthogonal = false;
  // D; even for kSinCos.
  int64_t dimensions = 0;
  uint64_t seed = 0;
};

// ψ(x) = √(2c/D)·(cos ωⱼᵀx …, sin ωⱼᵀx …), D/2 frequencies, or √(2c/D)·cos(ωⱼᵀx + bⱼ), D of them:
// ψ(x)·ψ(y) has the mean K(x, y). With p columns
//   ω    √(2γ)·number j·p + k of StreamId::kFourierFrequencies, normal; or, orthogonal,
//        √(2γ)·sⱼ·qⱼ, qⱼ a row of a p×p Haar matrix (FillOrthonormalRows; a new one for each p
//        rows), sⱼ² the sum of the squares of numbers j·p … j·p + p − 1 of kFourierLengths: each
//        frequency alone is normal (Yu, Suresh, Choromanski, Holtmann-Rice, Kumar 2016); or, of a
//        Laplacian, γ times numbers 2(j·p + k) over 2(j·p + k) + 1 of kFourierCauchy: Cauchy
//   b    2π·number j of kFourierPhases
// Frequencies are stored in turns, ω/2π.
absl::StatusOr<PlanPair> BuildFourier(const ServedAs& as, const FourierTask& task,
                                      Checkpoint checkpoint);

struct FourierShape {
  bool laplacian = false;
  FourierForm form = FourierForm::kSinCos;
  bool orthogonal = false;
  int64_t dimensions = 0;
  // After the input stage.
  int64_t columns = 0;
  FloatType serving_type = FloatType::kFloat32;
};

// What BuildFourier takes and leaves.
MappingCost CostOfFourier(const FourierShape& shape);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_FOURIER_MAPPING_H_
