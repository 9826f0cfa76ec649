// Models whose scores are linear in the rows.
#ifndef PHIMAP_CORE_LEARN_LINEAR_MODEL_H_
#define PHIMAP_CORE_LEARN_LINEAR_MODEL_H_

#include <string>
#include <utility>

#include "core/learn/learner.h"

namespace phimap {

// scores = rows·weightsᵀ + intercepts, by BLAS.
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

// Splits the weights of a learner that saw a constant feature of `bias` as its last column: row y
// of `augmented` is (w_y, v_y), and v_y·bias is the intercept. With bias 0 there is no such column.
LinearWeights SplitIntercepts(ConstMatrixView<double> augmented, double bias);

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_LINEAR_MODEL_H_
