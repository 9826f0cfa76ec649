// Random Fourier features: a feature map whose inner products are unbiased estimates of a kernel
// that depends on x − y (Rahimi, Recht 2007).
#ifndef PHIMAP_CORE_MAPPING_FOURIER_FOURIER_MAPPING_H_
#define PHIMAP_CORE_MAPPING_FOURIER_FOURIER_MAPPING_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/leaf_kernel.h"
#include "core/linalg/work.h"
#include "core/mapping/builder_parts/plan_pair.h"
#include "core/mapping/spec/family.h"
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
  // Whether the direction of a frequency is uniform. Only then can orthogonal frequencies have the
  // same distribution as independent ones.
  bool has_uniform_directions() const { return law->numbers == FourierLaw::Numbers::kNormal; }
};

// Splits a kernel expression c·K into the factor c and the law of K. This requires that K is a leaf
// kernel with LeafKernel::fourier, and that c is positive and finite. Any other expression has no
// Fourier features, and the result is nullopt. The functions of the law must not be called before
// gamma is resolved.
std::optional<FourierKernel> FourierKernelOf(const KernelExpression& kernel);

struct FourierTask {
  FourierKernel kernel;
  FourierForm form = FourierForm::kSinCos;
  // Makes the frequencies in each block of p orthogonal to each other, where p is the number of
  // columns. Only for kernels with uniform directions.
  bool orthogonal = false;
  // D, the number of features; an even number for kSinCos.
  int64_t dimensions = 0;
  uint64_t seed = 0;
};

// Builds random Fourier features ψ for the kernel c·K, such that the expected value of ψ(x)·ψ(y) is
// the value of the kernel at x and y. D is the number of features. The ωⱼ are random frequency
// vectors, and the bⱼ random phases:
//   kSinCos   ψ(x) = √(2c/D)·(cos ωⱼᵀx …, sin ωⱼᵀx …), with D/2 frequencies
//   kPhase    ψ(x) = √(2c/D)·cos(ωⱼᵀx + bⱼ), with D frequencies
//
// Random numbers: phase bⱼ is 2π·(number j of StreamId::kFourierPhases). Let p be the number of
// columns, and sⱼ = FourierLaw::row_scale. Entry k of ωⱼ is FourierLaw::column_factor of column k
// times one of the following, which depends on the law and the task:
//   normal      sⱼ·(number j·p + k of kFourierFrequencies)
//   orthogonal  sⱼ·lⱼ·(entry k of qⱼ). The vector qⱼ is a row of a p×p Haar matrix
//               (FillOrthonormalRows); each block of p rows has a new matrix. lⱼ² is the sum of the
//               squares of numbers j·p … j·p + p − 1 of kFourierLengths. Each ωⱼ alone then has the
//               same distribution as in the normal case (Yu, Suresh, Choromanski, Holtmann-Rice,
//               Kumar 2016).
//   Cauchy      sⱼ·(number 2(j·p + k) of kFourierCauchy)/(number 2(j·p + k) + 1 of the same stream)
// Frequencies are stored in turns, as ω/2π.
absl::StatusOr<PlanPair> BuildFourier(const ServedAs& as, const FourierTask& task,
                                      Checkpoint checkpoint);

// Fills `rows` with normal numbers. Entry (j, k) is number j·p + k of `stream`, where p is the
// number of columns of `rows`.
void FillNormalRows(uint64_t seed, StreamId stream, MatrixView<double> rows);
// Fills `rows` with random rows. Let p be the number of columns. Within each block of p rows, the
// rows are orthogonal to each other. Each row alone has the same distribution as a row of p normal
// numbers: its direction comes from FillOrthonormalRows, and its squared length is the sum of the
// squares of p numbers of `lengths`.
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
