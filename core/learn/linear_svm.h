// A linear support vector machine, by liblinear.
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

// For each class against the rest, with labels y = ±1 and x standing for (x, bias), the minimum of
//
//   ½‖w‖² + C Σ max(0, 1 − y_i w·x_i)²
//
// which liblinear's primal solver (L2R_L2LOSS_SVC, a trust region Newton method) approaches until
// the gradient's length is at most tolerance · max(1, min(n₊, n₋))/n of what it is at w = 0, or for
// 1,000 steps. Training draws nothing at random: the seed is not used. Two classes are one such
// problem. The scores are w·x.
//
// Memory: 16 bytes for each value that is not 0, and 8 a row and value of w.
// Cancel: at the next Newton step, each of which passes over the rows some ten times.
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
