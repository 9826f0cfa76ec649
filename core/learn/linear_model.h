// Models whose scores are linear in the rows.
#ifndef PHIMAP_CORE_LEARN_LINEAR_MODEL_H_
#define PHIMAP_CORE_LEARN_LINEAR_MODEL_H_

#include <string>
#include <utility>

#include "core/learn/learner.h"

namespace phimap {

// A model with scores = rows·weightsᵀ + intercepts, computed by BLAS. `weights` has one row per
// class.
class LinearModel : public Model {
 public:
  LinearModel(LinearWeights weights, std::string summary)
      : weights_(std::move(weights)), summary_(std::move(summary)) {}

  int64_t columns() const override { return weights_.weights.cols(); }
  int32_t class_count() const override { return static_cast<int32_t>(weights_.weights.rows()); }
  absl::Status Scores(ConstMatrixView<double> rows, MatrixView<double> scores,
                      Checkpoint checkpoint) const override;
  const LinearWeights* linear() const override { return &weights_; }
  std::string Summary() const override { return summary_; }

 private:
  LinearWeights weights_;
  std::string summary_;
};

// Separates weights from intercepts after training with a constant feature of value `bias` in the
// last column. Row y of `augmented` has the weights w_y of class y, followed by the weight v_y of
// the constant feature. The intercept of class y is v_y·bias. If `bias` is 0, there is no constant
// feature, and `augmented` has only the weights w_y.
LinearWeights SplitIntercepts(ConstMatrixView<double> augmented, double bias);

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_LINEAR_MODEL_H_
