// A linear support vector machine, trained by liblinear.
#ifndef PHIMAP_CORE_LEARN_LINEAR_SVM_H_
#define PHIMAP_CORE_LEARN_LINEAR_SVM_H_

#include <memory>

#include "core/learn/learner.h"

namespace phimap {

struct LinearSvmOptions {
  double C = 1;
  double tolerance = 0.01;
  double bias = 1;
};

// A linear support vector machine. For each class, a weight vector w is trained to separate the
// class from all others, with labels y = ±1. (With two classes, there is only one such problem.)
// Throughout, x stands for a row with `bias` appended. Training minimises
//
//   ½‖w‖² + C Σ_i max(0, 1 − y_i w·x_i)²
//
// by liblinear's primal solver (L2R_L2LOSS_SVC, a trust region Newton method). The solver stops
// after 1,000 steps, or earlier if the gradient is short enough: at most tolerance · max(1, min(n₊,
// n₋))/n times its length at w = 0. Here n is the number of rows, and n₊ and n₋ are the numbers of
// rows with y = 1 and y = −1. Training draws nothing at random, so the seed is not used. The scores
// are w·x.
//
// Memory: 16 bytes for each value that is not 0, and 8 bytes per row and per value of w.
// Cancel: takes effect at the next Newton step. A step makes about ten passes over the rows.
class LinearSvm : public Learner {
 public:
  explicit LinearSvm(const LinearSvmOptions& options) : options_(options) {}
  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  const LinearSvmOptions options_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_LINEAR_SVM_H_
