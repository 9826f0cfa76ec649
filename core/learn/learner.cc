#include "core/learn/learner.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/learn/learner_type.h"
#include "core/linalg/blas.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

absl::Status Invalid(absl::string_view reason, absl::string_view field, absl::string_view message,
                     std::map<std::string, std::string> metadata = {}) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason, field, message, std::move(metadata));
}

absl::Status CheckFinite(ConstMatrixView<double> rows) {
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const double* row = rows.row(i);
    const double* bad =
        std::find_if(row, row + rows.cols(), [](double value) { return !std::isfinite(value); });
    if (bad == row + rows.cols()) continue;
    return Invalid(
        reason::kValueNotFinite, "rows",
        absl::StrCat("row ", i, ", column ", bad - row, ": expected a finite number, got ", *bad),
        {{"row", absl::StrCat(i)}, {"column", absl::StrCat(bad - row)}});
  }
  return absl::OkStatus();
}

absl::Status CheckLength(absl::string_view field, absl::string_view one, size_t length,
                         int64_t rows) {
  if (static_cast<int64_t>(length) == rows) return absl::OkStatus();
  return Invalid(reason::kLengthMismatch, field,
                 absl::StrCat("expected one ", one, " per row (", rows, "), got ", length),
                 {{"expected", absl::StrCat(rows)}, {"actual", absl::StrCat(length)}});
}

// `what` completes "perceptron cannot …".
absl::Status CannotLearn(const LearnerType& learner, absl::string_view field,
                         absl::string_view what, bool LearnerType::*ability) {
  return Invalid(reason::kLearnerNotApplicable, field,
                 absl::StrCat(learner.name, " cannot ", what, "; choose ",
                              Alternatives(LearnersThat(ability))));
}

absl::Status CheckClasses(const TrainingSet& set, const LearnerType& learner) {
  if (!learner.learns_classes) {
    return CannotLearn(learner, "labels", "learn classes, only numbers",
                       &LearnerType::learns_classes);
  }
  if (set.class_count < 2) {
    return Invalid(
        reason::kFieldOutOfRange, "class_count",
        absl::StrCat("expected at least 2 classes to tell apart, got ", set.class_count));
  }
  PHIMAP_RETURN_IF_ERROR(CheckLength("labels", "label", set.labels.size(), set.rows.rows()));
  for (size_t i = 0; i < set.labels.size(); ++i) {
    if (set.labels[i] >= 0 && set.labels[i] < set.class_count) continue;
    return Invalid(reason::kFieldOutOfRange, "labels",
                   absl::StrCat("row ", i, ": expected a label from 0 to ", set.class_count - 1,
                                ", got ", set.labels[i]),
                   {{"row", absl::StrCat(i)}});
  }
  return absl::OkStatus();
}

absl::Status CheckTargets(const TrainingSet& set, const LearnerType& learner) {
  if (!learner.learns_numbers) {
    return CannotLearn(learner, "targets", "learn numbers, only classes",
                       &LearnerType::learns_numbers);
  }
  if (!set.labels.empty() || set.class_count != 0) {
    return Invalid(reason::kFieldsContradictory, "labels",
                   "expected no classes beside targets, which are numbers");
  }
  PHIMAP_RETURN_IF_ERROR(CheckLength("targets", "target", set.targets.size(), set.rows.rows()));
  return CheckTargetsFinite(set.targets);
}

absl::Status CheckWeights(const TrainingSet& set, const LearnerType& learner) {
  if (!learner.takes_row_weights) {
    return CannotLearn(learner, "weights", "weigh rows", &LearnerType::takes_row_weights);
  }
  PHIMAP_RETURN_IF_ERROR(CheckLength("weights", "weight", set.weights.size(), set.rows.rows()));
  PHIMAP_RETURN_IF_ERROR(CheckRowWeights(set.weights));
  if (std::any_of(set.weights.begin(), set.weights.end(), [](double w) { return w > 0; })) {
    return absl::OkStatus();
  }
  return Invalid(reason::kFieldOutOfRange, "weights", "expected a weight over 0, got 0 everywhere");
}

}  // namespace

absl::Status TrainingSet::Validate(const LearnerType& learner) const {
  if (rows.rows() == 0 || rows.cols() == 0) {
    return Invalid(
        reason::kRowsEmpty, "rows",
        absl::StrCat("expected at least one row of at least one column to learn from, got ",
                     CountOf(rows.rows(), "row"), " of ", CountOf(rows.cols(), "column")));
  }
  PHIMAP_RETURN_IF_ERROR(task() == HeadTask::kClasses ? CheckClasses(*this, learner)
                                                      : CheckTargets(*this, learner));
  if (!weights.empty()) PHIMAP_RETURN_IF_ERROR(CheckWeights(*this, learner));
  return CheckFinite(rows);
}

absl::Status CheckTargetsFinite(absl::Span<const double> targets) {
  for (size_t i = 0; i < targets.size(); ++i) {
    if (std::isfinite(targets[i])) continue;
    return Invalid(reason::kValueNotFinite, "targets",
                   absl::StrCat("row ", i, ": expected a finite number, got ", targets[i]),
                   {{"row", absl::StrCat(i)}});
  }
  return absl::OkStatus();
}

absl::Status CheckRowWeights(absl::Span<const double> weights) {
  for (size_t i = 0; i < weights.size(); ++i) {
    if (std::isfinite(weights[i]) && weights[i] >= 0) continue;
    return Invalid(reason::kFieldOutOfRange, "weights",
                   absl::StrCat("row ", i, ": expected a finite weight >= 0, got ", weights[i]),
                   {{"row", absl::StrCat(i)}});
  }
  return absl::OkStatus();
}

absl::Status Model::CheckColumns(int64_t columns) const {
  if (columns == this->columns()) return absl::OkStatus();
  return Invalid(reason::kColumnsMismatch, "rows",
                 absl::StrCat("the model was trained on ", CountOf(this->columns(), "column"),
                              ", got ", columns),
                 {{"expected", absl::StrCat(this->columns())}, {"actual", absl::StrCat(columns)}});
}

absl::StatusOr<std::vector<int32_t>> Model::Predict(ConstMatrixView<double> rows,
                                                    Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(CheckColumns(rows.cols()));
  const int64_t n = rows.rows();
  std::vector<int32_t> classes(static_cast<size_t>(n));
  Matrix<double> scores(std::min(n, kRowsPerScoring), class_count());
  for (int64_t first = 0; first < n; first += kRowsPerScoring) {
    const int64_t count = std::min(kRowsPerScoring, n - first);
    // Converts the progress of one block, 0 to 1, to the progress of all blocks.
    const auto part = [&](double fraction) {
      return checkpoint((static_cast<double>(first) + fraction * static_cast<double>(count)) /
                        static_cast<double>(n));
    };
    PHIMAP_RETURN_IF_ERROR(Scores(rows.Rows(first, count), scores.view().Rows(0, count), part));
    for (int64_t i = 0; i < count; ++i) {
      const double* row = scores.row(i);
      classes[first + i] = static_cast<int32_t>(std::max_element(row, row + class_count()) - row);
    }
  }
  return classes;
}

absl::Status LinearModel::Scores(ConstMatrixView<double> rows, MatrixView<double> scores,
                                 Checkpoint checkpoint) const {
  PHIMAP_RETURN_IF_ERROR(CheckColumns(rows.cols()));
  const int64_t n = rows.rows();
  for (int64_t first = 0; first < n; first += kRowsPerScoring) {
    PHIMAP_RETURN_IF_ERROR(checkpoint(static_cast<double>(first) / static_cast<double>(n)));
    const int64_t count = std::min(kRowsPerScoring, n - first);
    const MatrixView<double> out = scores.Rows(first, count);
    MultiplyTransposed(1, rows.Rows(first, count), weights_.weights.view(), 0, out);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t y = 0; y < out.cols(); ++y) out(i, y) += weights_.intercepts[y];
    }
  }
  return absl::OkStatus();
}

ScoreWeights ToScores(const LinearWeights& linear) {
  const Matrix<double>& w = linear.weights;
  const bool two_classes = w.rows() == 2;
  const int64_t scores = two_classes ? 1 : w.rows();
  ScoreWeights out{.weights = Matrix<double>::Uninit(w.cols(), scores),
                   .intercepts = std::vector<double>(static_cast<size_t>(scores))};
  for (int64_t y = 0; y < scores; ++y) {
    for (int64_t k = 0; k < w.cols(); ++k) {
      out.weights(k, y) = two_classes ? (w(1, k) - w(0, k)) / 2 : w(y, k);
    }
    out.intercepts[y] =
        two_classes ? (linear.intercepts[1] - linear.intercepts[0]) / 2 : linear.intercepts[y];
  }
  return out;
}

LinearWeights SplitIntercepts(ConstMatrixView<double> augmented, double bias) {
  const int64_t columns = augmented.cols() - (bias > 0 ? 1 : 0);
  LinearWeights split{.weights = Matrix<double>::Uninit(augmented.rows(), columns),
                      .intercepts = std::vector<double>(static_cast<size_t>(augmented.rows())),
                      .bias = bias};
  for (int64_t y = 0; y < augmented.rows(); ++y) {
    std::copy_n(augmented.row(y), columns, split.weights.row(y));
    if (bias > 0) split.intercepts[y] = augmented(y, columns) * bias;
  }
  return split;
}

}  // namespace phimap
