// Interface of all learners: a function from labeled rows to a model.
//
//   PHIMAP_ASSIGN_OR_RETURN(const LearnerSpec spec, LearnerSpec::Parse("linear_svm(C=1)"));
//   PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Learner> learner, MakeLearner(spec));
//   PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Model> model,
//                           learner->Train({features, labels, class_count}, seed, checkpoint));
//   PHIMAP_ASSIGN_OR_RETURN(const std::vector<int32_t> classes, model->Predict(others,
//   checkpoint));
#ifndef PHIMAP_CORE_LEARN_LEARNER_H_
#define PHIMAP_CORE_LEARN_LEARNER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/linalg/checkpoint.h"
#include "core/linalg/matrix.h"

namespace phimap {

// n rows and the class of each. A view that is valid only during the call.
struct TrainingSet {
  ConstMatrixView<double> rows;
  // n numbers from 0 to class_count−1.
  absl::Span<const int32_t> labels;
  // At least 2. A class may have no rows; no row is then predicted to be in it.
  int32_t class_count = 0;

  // INVALID_ARGUMENT unless there are rows and columns (ROWS_EMPTY), as many labels as rows
  // (LENGTH_MISMATCH, field "labels"), labels and class count in range (FIELD_OUT_OF_RANGE), and
  // finite numbers (VALUE_NOT_FINITE, field "rows", with row and column). Every learner calls it.
  absl::Status Validate() const;
};

// scores(x) = weights·x + intercepts, with one row of weights per class. Only differences between
// the rows of two classes have a meaning. w = (weights_1 − weights_0)/2 is the separator of a
// two-class model, which predicts class 1 where w·x + b > 0.
struct LinearWeights {
  Matrix<double> weights;          // classes × columns
  std::vector<double> intercepts;  // one a class
  // The constant feature B, whose weight times B is the intercept. 0 if the model has no
  // intercepts. The constant feature is part of the margin, which is divided by √(‖w‖² +
  // b²/B²)·√(‖x‖² + B²).
  double bias = 0;
};

// Immutable and thread-safe; owns its data.
class Model {
 public:
  virtual ~Model() = default;

  // Number of columns of the rows that the model takes: that of its training rows.
  virtual int64_t columns() const = 0;
  virtual int32_t class_count() const = 0;
  // scores_ij: how much speaks for class j of row i. Shapes: rows n×columns(), scores
  // n×class_count(). Each learner documents its scale.
  virtual absl::Status Scores(ConstMatrixView<double> rows, MatrixView<double> scores,
                              Checkpoint checkpoint) const = 0;
  // Returns the class of each row: the class with the highest score, the first of several equal
  // ones.
  absl::StatusOr<std::vector<int32_t>> Predict(ConstMatrixView<double> rows,
                                               Checkpoint checkpoint) const;
  // The weights of a model whose scores are linear in the rows; nullptr for others.
  virtual const LinearWeights* linear() const { return nullptr; }
  // The vector v of a model that scores class y by ⟨v, block y of the row⟩ (one_parameter):
  // columns() / class_count() numbers; empty for other models.
  virtual absl::Span<const double> shared_weights() const { return {}; }
  // One line about the training, for people ("812 mistakes in the last epoch").
  virtual std::string Summary() const = 0;

 protected:
  // INVALID_ARGUMENT (COLUMNS_MISMATCH) with both numbers.
  absl::Status CheckColumns(int64_t columns) const;
};

// Immutable and thread-safe.
class Learner {
 public:
  virtual ~Learner() = default;

  // The model is a function of examples and seed alone: the same bits on every run (where OpenBLAS
  // chooses the same core). `checkpoint` is called often, with the share of the work that is done;
  // an error that it returns ends training. Calls BLAS: not on RPC threads.
  //
  // Errors: those of TrainingSet::Validate; examples that a learner cannot handle are
  // FAILED_PRECONDITION.
  virtual absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples,
                                                             uint64_t seed,
                                                             Checkpoint checkpoint) const = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_LEARNER_H_
