// A kernel support vector machine, by libsvm: the reference for learners on features.
#ifndef PHIMAP_CORE_LEARN_KERNEL_SVM_H_
#define PHIMAP_CORE_LEARN_KERNEL_SVM_H_

#include <memory>
#include <utility>

#include "core/kernel/kernel_program.h"
#include "core/learn/learner.h"

namespace phimap {

// Most rows of two classes together.
inline constexpr int64_t kMaxKernelSvmRows = 8192;

struct KernelSvmOptions {
  double C = 1;
  double tolerance = 0.001;
};

// For each pair of classes, with labels y = ±1, the minimum of
//
//   ½‖w‖² + C Σ max(0, 1 − y_i (w·φ(x_i) + b))
//
// by sequential minimal optimisation, until no pair of rows violates the optimality conditions by
// more than `tolerance`. Training draws nothing at random: the seed is not used. With two classes
// the scores are −s and s, s = w·φ(x) + b for class 1; with more, a score is the number of pairs
// that vote for the class, as in libsvm.
//
// The kernel need not be positive semidefinite; the result is then a stationary point.
// Errors: FAILED_PRECONDITION (ROWS_TOO_MANY) for two classes of more than kMaxKernelSvmRows rows.
// Memory: 16·m² bytes, m the rows of two classes together; the kernel's values are computed again
//         for each pair.
// Cancel: between pairs and, within one, when libsvm next asks for a kernel value that it does not
//         hold.
class KernelSvm : public Learner {
 public:
  KernelSvm(const KernelSvmOptions& options, KernelProgram kernel)
      : options_(options), kernel_(std::move(kernel)) {}
  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  const KernelSvmOptions options_;
  const KernelProgram kernel_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_KERNEL_SVM_H_
