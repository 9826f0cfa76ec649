// Random Fourier features: a feature map whose inner products are unbiased estimates of a kernel
// that depends on x − y (Rahimi, Recht 2007).
#ifndef PHIMAP_CORE_MAPPING_FOURIER_FOURIER_MAPPING_H_
#define PHIMAP_CORE_MAPPING_FOURIER_FOURIER_MAPPING_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/leaf_kernel.h"
#include "core/linalg/checkpoint.h"
#include "core/mapping/builder/plan_pair.h"
#include "core/mapping/spec/mapping_cost.h"
#include "core/random/random_stream.h"
#include "core/theory/fourier_bounds.h"

namespace phimap {

// A leaf kernel with a known distribution of frequencies (`law`), times `factor`.
struct FourierKernel {
  double factor = 1;
  const FourierLaw* law = nullptr;
  ParameterValues values;

  double ColumnFactor(int64_t column) const {
    return law->column_factor == nullptr ? 1 : law->column_factor(values, column);
  }
  // Whether the direction of a frequency is uniform. Then orthogonal frequencies can have the same
  // distribution.
  bool has_uniform_directions() const { return law->numbers == FourierLaw::Numbers::kNormal; }
};

// Returns the parts of the expression, or nullopt if it has no Fourier features. It must be c·K
// with a leaf K that has LeafKernel::fourier, and c > 0 finite. The functions of the law must not
// be called before gamma is resolved.
std::optional<FourierKernel> FourierKernelOf(const KernelExpression& kernel);

struct FourierTask {
  FourierKernel kernel;
  FourierForm form = FourierForm::kSinCos;
  // Makes frequencies orthogonal within blocks of p, where p is the number of columns. Only for
  // kernels with uniform directions.
  bool orthogonal = false;
  // D, the number of features. Even for kSinCos.
  int64_t dimensions = 0;
  uint64_t seed = 0;
};

// Builds ψ(x) = √(2c/D)·(cos ωⱼᵀx …, sin ωⱼᵀx …) with D/2 frequencies, or √(2c/D)·cos(ωⱼᵀx + bⱼ)
// with D frequencies. ψ(x)·ψ(y) has the mean K(x, y). With p columns and sⱼ =
// FourierLaw::row_scale, entry k of ωⱼ is FourierLaw::column_factor of column k times one of
//   normal      sⱼ·(number j·p + k of StreamId::kFourierFrequencies)
//   orthogonal  sⱼ·lⱼ·(entry k of qⱼ). qⱼ is a row of a p×p Haar matrix (FillOrthonormalRows; a new
//               matrix for each p rows), lⱼ² the sum of the squares of numbers j·p … j·p + p − 1 of
//               kFourierLengths. Each frequency alone has the normal distribution above (Yu,
//               Suresh, Choromanski, Holtmann-Rice, Kumar 2016).
//   Cauchy      sⱼ·(number 2(j·p + k) of kFourierCauchy)/(number 2(j·p + k) + 1)
// and bⱼ is 2π·(number j of kFourierPhases). Frequencies are stored in turns, as ω/2π.
absl::StatusOr<PlanPair> BuildFourier(const ServedAs& as, const FourierTask& task,
                                      Checkpoint checkpoint);

// Fills `rows` with normal numbers. Entry (j, k) is number j·p + k of `stream`, where p is the
// number of columns.
void FillNormalRows(uint64_t seed, StreamId stream, MatrixView<double> rows);
// Fills `rows` with rows that are orthogonal within blocks of p, where p is the number of columns.
// Each row alone is distributed like a row of normal numbers. FillOrthonormalRows gives its
// direction; its squared length is the sum of the squares of p numbers of `lengths`.
absl::Status FillOrthogonalNormalRows(uint64_t seed, StreamId lengths, MatrixView<double> rows,
                                      Checkpoint checkpoint);

struct FourierShape {
  const FourierLaw* law = nullptr;
  FourierForm form = FourierForm::kSinCos;
  bool orthogonal = false;
  int64_t dimensions = 0;
  // Number of columns after the input stage.
  int64_t columns = 0;
  FloatType serving_type = FloatType::kFloat32;
};

// Returns cost and result sizes of BuildFourier.
MappingCost CostOfFourier(const FourierShape& shape);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_FOURIER_FOURIER_MAPPING_H_
