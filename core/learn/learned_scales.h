// Length scales of columns that are learned from labels: columns on which the answer does not
// depend get long ones, so that they no longer blur the kernel (Radhakrishnan, Beaglehole, Pandit,
// Belkin, Science 383, 2024: recursive feature machines, in their diagonal form).
//
// With a ridge head on F2 of landmarks a_i, the answer is f(x) = ȳ + Σ_i v_i·K(x, a_i). The average
// gradient outer product is M = E ∇f∇fᵀ, over training rows and outputs. Its diagonal, divided by
// its mean and floored at kLeastScaleShare, takes the place of the 1/s_k² of the kernel.
//
// The scales use labels. So no theorem about landmarks that know nothing of labels holds for a
// version that is built with them from the same rows.
#ifndef PHIMAP_CORE_LEARN_LEARNED_SCALES_H_
#define PHIMAP_CORE_LEARN_LEARNED_SCALES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/kernel/kernel_expression.h"
#include "core/learn/learner.h"
#include "core/linalg/matrix.h"
#include "core/linalg/work.h"

namespace phimap {

// Least value of an entry of the diagonal over their mean. A column with this value has a scale
// that is 30 times that of an average column.
inline constexpr double kLeastScaleShare = 1e-3;

// Returns the diagonal of M: for each column the mean over rows and outputs of (∂f/∂x_k)², where
// f_j(x) = Σ_i v(i, j)·K(x, a_i) for output j. Where a row equals a landmark, that landmark's
// gradient counts as 0.
//
// Shapes: landmarks m×p, v m×outputs, rows n×p, all as the kernel takes them.
// Errors: INVALID_ARGUMENT (KERNEL_NOT_APPLICABLE, field "kernel") unless the kernel is one that
//         has scales, on all columns, or a number times it; GAMMA_UNRESOLVED; COLUMNS_MISMATCH.
// Cost:   n·m·p·(outputs + 1) multiplications. Calls BLAS; one thread.
absl::StatusOr<std::vector<double>> AverageSquaredGradient(const KernelExpression& kernel,
                                                           ConstMatrixView<double> landmarks,
                                                           ConstMatrixView<double> v,
                                                           ConstMatrixView<double> rows,
                                                           Checkpoint checkpoint);

// INVALID_ARGUMENT (KERNEL_NOT_APPLICABLE, field "kernel") as AverageSquaredGradient.
absl::Status CheckLearnsScales(const KernelExpression& kernel);

struct ScaleLearningOptions {
  // Landmarks are drawn uniformly from the training rows, as many as there are at most.
  int64_t landmarks = 500;
  int rounds = 3;
  // Training rows over which gradients are averaged, at most.
  int64_t gradient_rows = 2000;
  uint64_t seed = 0;
};

struct LearnedScales {
  struct Trial {
    KernelExpression kernel;
    // Mean squared error of the targets of validation rows, as in RidgeFit::Trial, with the best
    // alpha.
    double error = 0;
  };
  // The kernel as it was given, and then each that was tried.
  std::vector<Trial> trials;
  // The trial of least error; 0 if no scales were better than none.
  int64_t best = 0;
};

// Learns scales in rounds. Each round takes M of the best kernel of the round before, and tries the
// new scales as they are, with all lengths halved, and doubled; M says nothing of their common
// factor. A trial draws no new landmarks. Scales have four significant digits.
//
// `train` and `validate` have the rows as the kernel takes them, with labels or targets, and
// weights if there are any. Depends only on the arguments.
//
// Errors: those of AverageSquaredGradient, TrainingSet::Validate and RidgeTraining::Solve;
//         EXPRESSION_INVALID if there are so many columns that the kernel's text with their scales
//         is longer than kMaxExpressionBytes.
// Memory: 8·(landmarks·(5·landmarks + p) + 256·p) bytes and some kilobytes.
absl::StatusOr<LearnedScales> LearnScales(const KernelExpression& kernel, const TrainingSet& train,
                                          const TrainingSet& validate,
                                          const ScaleLearningOptions& options,
                                          Checkpoint checkpoint);

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_LEARNED_SCALES_H_
