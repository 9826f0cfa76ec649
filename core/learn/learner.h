// Interfaces of all learners and their models, and the linear model that several learners train. A
// learner is a function from rows, each with a class or a number, to a model.
//
//   PHIMAP_ASSIGN_OR_RETURN(const LearnerSpec spec, LearnerSpec::Parse("linear_svm(C=1)"));
//   PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Learner> learner, MakeLearner(spec));
//   PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Model> model,
//                           learner->Train({features, labels, class_count}, seed, checkpoint));
//   PHIMAP_ASSIGN_OR_RETURN(const std::vector<int32_t> classes,
//                           model->Predict(others, checkpoint));
#ifndef PHIMAP_CORE_LEARN_LEARNER_H_
#define PHIMAP_CORE_LEARN_LEARNER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/head/head.h"
#include "core/linalg/matrix.h"
#include "core/linalg/work.h"

namespace phimap {

// Rows that are scored between two checkpoints of the monitor.
inline constexpr int64_t kRowsPerScoring = 1024;

// Rows whose kernel values, or whose products with separators, are computed at a time.
inline constexpr int64_t kKernelRows = 256;

struct LearnerType;

// n rows and what is known of each: its class, or a number. Does not own them: they must stay valid
// during the call.
struct TrainingSet {
  ConstMatrixView<double> rows;
  // For classes, n numbers from 0 to class_count−1; empty for numbers.
  absl::Span<const int32_t> labels = {};
  // For classes at least 2, and 0 for numbers. A class may have no rows; then no row is ever
  // predicted to be in it.
  int32_t class_count = 0;
  // For numbers, n finite numbers; empty for classes.
  absl::Span<const double> targets = {};
  // The weight of each row, finite and at least 0, and not all 0. A row of weight 2 counts as two
  // rows of weight 1. Empty if every row has the weight 1.
  absl::Span<const double> weights = {};

  HeadTask task() const { return targets.empty() ? HeadTask::kClasses : HeadTask::kNumbers; }
  double weight(int64_t i) const { return weights.empty() ? 1 : weights[i]; }

  // Every learner calls this function first. Returns INVALID_ARGUMENT for one of these reasons:
  // - There are no rows or no columns (ROWS_EMPTY).
  // - The learner cannot learn classes, or numbers, or takes no weights (LEARNER_NOT_APPLICABLE,
  //   field "labels", "targets" or "weights"). The message names the learners that can.
  // - The number of labels, targets or weights differs from the number of rows (LENGTH_MISMATCH).
  // - A label, the class count or a weight is out of range, or no weight is over 0
  //   (FIELD_OUT_OF_RANGE).
  // - A number is not finite (VALUE_NOT_FINITE, field "rows" or "targets", with the row).
  absl::Status Validate(const LearnerType& learner) const;
};

// INVALID_ARGUMENT (VALUE_NOT_FINITE, field "targets") with the first row whose target is not
// finite.
absl::Status CheckTargetsFinite(absl::Span<const double> targets);
// INVALID_ARGUMENT (FIELD_OUT_OF_RANGE, field "weights") with the first row whose weight is not a
// finite number of at least 0.
absl::Status CheckRowWeights(absl::Span<const double> weights);

// A linear model: scores(x) = weights·x + intercepts, with one row of weights per class. Only the
// differences between the rows of two classes are meaningful. With two classes, the separator is w
// = (weights_1 − weights_0)/2. Its intercept b is defined in the same way, and the model predicts
// class 1 where w·x + b > 0. A model of numbers has one row of weights, and its score is the
// number.
struct LinearWeights {
  Matrix<double> weights;          // classes × columns
  std::vector<double> intercepts;  // one per class
  // Value B of the constant feature, or 0 if the model has no intercepts. An intercept b is the
  // weight of this feature times B. Margins include the constant feature: for weights w and a row
  // x, they are divided by √(‖w‖² + b²/B²)·√(‖x‖² + B²).
  double bias = 0;
};

// A linear model as a head has it (core/head/head.h): one score for two classes, w·x + b with the
// separator w, or for a number, and otherwise a score for each class.
struct ScoreWeights {
  Matrix<double> weights;          // columns × scores
  std::vector<double> intercepts;  // one per score
};
ScoreWeights ToScores(const LinearWeights& linear);

// Immutable and thread-safe; owns its data.
class Model {
 public:
  virtual ~Model() = default;

  // Number of columns that rows must have: as many as the training rows had.
  virtual int64_t columns() const = 0;
  // 0 for a model of numbers.
  virtual int32_t class_count() const = 0;
  int64_t score_count() const { return class_count() == 0 ? 1 : class_count(); }
  // Computes the scores of rows. Entry (i, j) of `scores` is the score of row i for class j; a
  // higher score makes the class more likely. Each learner documents the scale of its scores. The
  // only score of a model of numbers is the number. Shapes: rows n×columns(), scores
  // n×score_count().
  virtual absl::Status Scores(ConstMatrixView<double> rows, MatrixView<double> scores,
                              Checkpoint checkpoint) const = 0;
  // Returns the class of each row: the class with the highest score. If several classes share the
  // highest score, the first of them. REQUIRES: a model of classes.
  absl::StatusOr<std::vector<int32_t>> Predict(ConstMatrixView<double> rows,
                                               Checkpoint checkpoint) const;
  // The weights of a model whose scores are linear in the rows; nullptr for others.
  virtual const LinearWeights* linear() const { return nullptr; }
  // The weight vector v of a model (one_parameter) that divides a row into one block per class and
  // scores class y by ⟨v, block y of the row⟩. It has columns() / class_count() numbers. Empty for
  // other models.
  virtual absl::Span<const double> shared_weights() const { return {}; }
  // One line about the training, for people ("812 mistakes in the last epoch").
  virtual std::string Summary() const = 0;

 protected:
  // Returns INVALID_ARGUMENT (COLUMNS_MISMATCH), with both numbers, unless `columns` equals
  // columns().
  absl::Status CheckColumns(int64_t columns) const;
};

// A model with scores = rows·weightsᵀ + intercepts, computed by BLAS. `weights` has one row per
// class, or one row for numbers.
class LinearModel : public Model {
 public:
  LinearModel(LinearWeights weights, std::string summary)
      : weights_(std::move(weights)), summary_(std::move(summary)) {}

  int64_t columns() const override { return weights_.weights.cols(); }
  // A model of classes has at least two rows of weights.
  int32_t class_count() const override {
    return weights_.weights.rows() == 1 ? 0 : static_cast<int32_t>(weights_.weights.rows());
  }
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

// Immutable and thread-safe.
class Learner {
 public:
  virtual ~Learner() = default;

  // Trains a model. The model depends only on the examples and the seed: every run gives a
  // bit-for-bit identical model, as long as OpenBLAS chooses its code for the same CPU type. Calls
  // BLAS, so it must not run on an RPC thread.
  //
  // `checkpoint` is called often, with the share of the work that is done. If it returns an error,
  // training ends with that error.
  //
  // Errors: those of TrainingSet::Validate; FAILED_PRECONDITION for examples that the learner
  // cannot handle.
  virtual absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples,
                                                             uint64_t seed,
                                                             Checkpoint checkpoint) const = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_LEARNER_H_
