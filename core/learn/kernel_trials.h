// Tries kernels on labeled rows: ridge regression on F2 of uniform landmarks, which are the same
// rows for each kernel, and its error on validation rows.
#ifndef PHIMAP_CORE_LEARN_KERNEL_TRIALS_H_
#define PHIMAP_CORE_LEARN_KERNEL_TRIALS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_program.h"
#include "core/learn/learner.h"
#include "core/learn/ridge.h"
#include "core/linalg/matrix.h"
#include "core/linalg/work.h"

namespace phimap {

struct KernelTrialOptions {
  // Landmarks are drawn uniformly from the training rows, as many as there are at most.
  int64_t landmarks = 500;
  uint64_t seed = 0;
};

// Immutable and thread-safe. Depends only on the arguments.
class KernelTrials {
 public:
  struct Fit {
    // Mean squared error of the targets of the validation rows (RidgeFit::Trial), with the best
    // alpha.
    double error = 0;
    // The landmarks that are pivots, and v, whose sums Σ v_i·K(x, a_i) are the answers less the
    // mean target.
    Matrix<double> landmarks;
    Matrix<double> v;
  };

  // The sets have the rows as the kernels take them, and must outlive this object.
  KernelTrials(const TrainingSet& train, const TrainingSet& validate,
               const KernelTrialOptions& options);

  // Tries a kernel for which K(x, x) is the same for all rows and every gamma is a number.
  // Errors: those of RidgeTraining::Solve and of the checkpoint.
  // Memory: 8·landmarks·(5·landmarks + columns) bytes and some kilobytes.
  absl::StatusOr<Fit> Try(const KernelExpression& kernel, Checkpoint checkpoint) const;

  // The first `count` training rows in the order in which landmarks are drawn, or all.
  Matrix<double> TrainingRows(int64_t count) const;

 private:
  // The landmarks that are pivots, and the factor L of their Gram matrix, LLᵀ.
  struct Landmarks {
    Matrix<double> pivots;
    Matrix<double> factor;
  };

  absl::StatusOr<Landmarks> FactorOf(const KernelProgram& program, Checkpoint checkpoint) const;
  absl::Status AddBlock(const KernelProgram& program, const Landmarks& landmarks,
                        RidgeTraining::Part part, int64_t first, int64_t count,
                        RidgeTraining& training, Checkpoint checkpoint) const;

  const TrainingSet& train_;
  const TrainingSet& validate_;
  // Training rows in random order.
  const std::vector<int64_t> order_;
  const Matrix<double> landmarks_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_KERNEL_TRIALS_H_
