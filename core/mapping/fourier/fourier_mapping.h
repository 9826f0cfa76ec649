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

// factor times a leaf kernel that has a law of frequencies.
struct FourierKernel {
  double factor = 1;
  const FourierLaw* law = nullptr;
  ParameterValues values;

  double ColumnFactor(int64_t column) const {
    return law->column_factor == nullptr ? 1 : law->column_factor(values, column);
  }
  // Whether a frequency's direction is uniform, so that orthogonal ones have the law too.
  bool has_uniform_directions() const { return law->numbers == FourierLaw::Numbers::kNormal; }
};

// The expression's parts, if Fourier features exist for it: c·K with a leaf K,
// LeafKernel::fourier, c > 0 and finite. Before gamma is resolved nothing may ask the law for
// numbers.
std::optional<FourierKernel> FourierKernelOf(const KernelExpression& kernel);

struct FourierTask {
  FourierKernel kernel;
  FourierForm form = FourierForm::kSinCos;
  // Frequencies that are orthogonal within blocks of as many as there are columns; only for kernels
  // with uniform directions.
  bool orthogonal = false;
  // D; even for kSinCos.
  int64_t dimensions = 0;
  uint64_t seed = 0;
};

// ψ(x) = √(2c/D)·(cos ωⱼᵀx …, sin ωⱼᵀx …), D/2 frequencies, or √(2c/D)·cos(ωⱼᵀx + bⱼ), D of them:
// ψ(x)·ψ(y) has the mean K(x, y). With p columns, sⱼ, FourierLaw::row_scale, and each column
// multiplied by FourierLaw::column_factor,
//   ω    sⱼ·number j·p + k of StreamId::kFourierFrequencies, normal; or, orthogonal, sⱼ·lⱼ·qⱼ, qⱼ a
//        row of a p×p Haar matrix (FillOrthonormalRows; a new one for each p rows), lⱼ² the sum of
//        the squares of numbers j·p … j·p + p − 1 of kFourierLengths: each frequency alone is as
//        before (Yu, Suresh, Choromanski, Holtmann-Rice, Kumar 2016); or, of a Cauchy law, sⱼ times
//        numbers 2(j·p + k) over 2(j·p + k) + 1 of kFourierCauchy
//   b    2π·number j of kFourierPhases
// Frequencies are stored in turns, ω/2π.
absl::StatusOr<PlanPair> BuildFourier(const ServedAs& as, const FourierTask& task,
                                      Checkpoint checkpoint);

// Normal numbers: number j·p + k of `stream` is entry (j, k).
void FillNormalRows(uint64_t seed, StreamId stream, MatrixView<double> rows);
// Rows that are orthogonal within blocks of as many as there are columns, each alone distributed as
// a row of normal numbers: its direction by FillOrthonormalRows, the square of its length the sum
// of the squares of p numbers of `lengths`.
absl::Status FillOrthogonalNormalRows(uint64_t seed, StreamId lengths, MatrixView<double> rows,
                                      Checkpoint checkpoint);

struct FourierShape {
  const FourierLaw* law = nullptr;
  FourierForm form = FourierForm::kSinCos;
  bool orthogonal = false;
  int64_t dimensions = 0;
  // After the input stage.
  int64_t columns = 0;
  FloatType serving_type = FloatType::kFloat32;
};

// Cost and result sizes of BuildFourier.
MappingCost CostOfFourier(const FourierShape& shape);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_FOURIER_FOURIER_MAPPING_H_
