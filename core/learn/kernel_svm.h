// A kernel support vector machine, trained by libsvm. It is the reference for learners on features.
#ifndef PHIMAP_CORE_LEARN_KERNEL_SVM_H_
#define PHIMAP_CORE_LEARN_KERNEL_SVM_H_

#include <memory>
#include <utility>

#include "core/kernel/kernel_program.h"
#include "core/learn/learner.h"

namespace phimap {

// Maximum number of rows in any two classes together.
inline constexpr int64_t kMaxKernelSvmRows = 8192;

struct KernelSvmOptions {
  double C = 1;
  double tolerance = 0.001;
};

// A support vector machine with a kernel. For each pair of classes, with labels y = ±1, training
// finds the weights w and the offset b that minimise
//
//   ½‖w‖² + C Σ_i max(0, 1 − y_i (w·φ(x_i) + b)).
//
// The method is sequential minimal optimisation. It ends when no pair of rows violates the
// optimality conditions by more than `tolerance`. Training draws nothing at random, so the seed is
// not used. If the kernel is not positive semidefinite, the result is only a stationary point.
//
// With two classes, let s = w·φ(x) + b be the score for class 1; the scores of the classes are −s
// and s. With more classes, the score of a class is the number of pairs that vote for it, as in
// libsvm.
//
// Errors: FAILED_PRECONDITION (ROWS_TOO_MANY) if two classes together have more than
// kMaxKernelSvmRows rows.
// Memory: 16·m² bytes, where m is the number of rows of two classes together. The kernel values are
//         computed again for each pair.
// Cancel: takes effect between pairs. Within a pair, it takes effect when libsvm next reads a
//         kernel value that is not in its cache.
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
