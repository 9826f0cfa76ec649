#include "core/learn/evaluation.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/learn/learner.h"
#include "core/learn/margin.h"
#include "core/learn/row_order.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// Share of a fold's progress that is attributed to learning. The rest is attributed to scoring.
constexpr double kLearningShare = 0.9;
constexpr int kMaxFolds = 100;

constexpr absl::string_view kHeldOutPremise =
    "assumes that the tested rows were drawn independently from the rows to come, and that neither "
    "the learner nor the version was fitted to them";
constexpr absl::string_view kFoldsPremise =
    "approximate: it assumes that the errors on all tested rows are independent and equally "
    "likely, "
    "but the models of the folds share most of their training rows, so that it is often too "
    "narrow; "
    "a held-out share has an exact interval";

absl::Status OutOfRange(absl::string_view field, absl::string_view expected,
                        absl::string_view actual) {
  return MakeError(Code::kInvalidArgument, reason::kFieldOutOfRange, field,
                   absl::StrCat("expected ", expected, ", got ", actual),
                   {{"expected", std::string(expected)}, {"actual", std::string(actual)}});
}

absl::Status CheckShare(absl::string_view field, double value) {
  if (value > 0 && value < 1) return absl::OkStatus();
  return OutOfRange(field, "a number over 0 and under 1", absl::StrCat(value));
}

// Returns the separators of a linear model: one per class, or a single one for two classes.
Separators SeparatorsOf(const LinearWeights& linear) {
  Separators separators;
  ScoreWeights scores = ToScores(linear);
  for (int64_t k = 0; k < scores.weights.cols(); ++k) {
    double sum = 0;
    for (int64_t j = 0; j < scores.weights.rows(); ++j) {
      sum += scores.weights(j, k) * scores.weights(j, k);
    }
    separators.norms.push_back(std::sqrt(sum));
  }
  if (linear.bias == 0) return separators;
  separators.intercepts = std::move(scores.intercepts);
  separators.intercept_scale = linear.bias;
  return separators;
}

double SquaredLength(const double* row, int64_t columns) {
  return std::inner_product(row, row + columns, row, 0.0);
}

std::vector<double> Sorted(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values;
}

// One evaluation in progress.
class Run {
 public:
  Run(const Learner& learner, LabeledRows& labeled, const EvaluationOptions& options,
      EvaluationMonitor monitor)
      : learner_(learner),
        labeled_(labeled),
        options_(options),
        monitor_(monitor),
        n_(labeled.rows.rows()),
        folds_(std::max(1, options.folds)),
        order_(static_cast<size_t>(n_)),
        confusion_(static_cast<size_t>(labeled.class_count) * labeled.class_count) {
    std::iota(order_.begin(), order_.end(), 0);
  }

  absl::StatusOr<Evaluation> Finish() {
    PHIMAP_RETURN_IF_ERROR(Check());
    for (int fold = 0; fold < folds_; ++fold) PHIMAP_RETURN_IF_ERROR(RunFold(fold));
    CountUp();
    out_.margins = Percentiles(Sorted(std::move(margins_)));
    out_.unnormalised_margins = Percentiles(Sorted(std::move(unnormalised_margins_)));
    out_.kernel_margins = Percentiles(Sorted(std::move(kernel_margins_)));
    return std::move(out_);
  }

 private:
  absl::Status Check();
  absl::Status RunFold(int fold);
  absl::Status Report(int fold, double share) { return monitor_(fold, (fold + share) / folds_); }
  absl::Status ScoreRows(const Model& model, int fold, const RowSplit& split);
  void TakeRow(const Model& model, const RowSplit& split, int64_t i, const double* scores);
  void TakeMargins(int64_t i, bool tested, absl::Span<const double> scores);
  void Certify();
  void CountUp();

  const Learner& learner_;
  LabeledRows& labeled_;
  const EvaluationOptions& options_;
  const EvaluationMonitor monitor_;
  const int64_t n_;
  const int folds_;
  // order_[i] is the original number of the row that is now at position i.
  std::vector<int64_t> order_;
  std::vector<int64_t> confusion_;
  std::vector<double> margins_;
  std::vector<double> unnormalised_margins_;
  std::vector<double> kernel_margins_;
  // Labels of the current fold.
  std::vector<int32_t> labels_;
  std::optional<Separators> separators_;
  std::vector<double> fold_margins_;         // of all rows, in the kernel's space
  std::vector<double> fold_tested_margins_;  // of the tested rows, in the kernel's space
  Evaluation out_;
};

absl::Status Run::Check() {
  PHIMAP_RETURN_IF_ERROR(options_.Validate());
  PHIMAP_CHECK(static_cast<int64_t>(labeled_.labels.size()) == n_);
  PHIMAP_CHECK(labeled_.self_kernel.size() == labeled_.rounding.size());
  PHIMAP_CHECK(labeled_.self_kernel.empty() ||
               static_cast<int64_t>(labeled_.self_kernel.size()) == n_);
  out_.classes.resize(static_cast<size_t>(labeled_.class_count));
  for (const int32_t label : labeled_.labels) ++out_.classes[label].rows;
  const auto present = std::count_if(out_.classes.begin(), out_.classes.end(),
                                     [](const auto& c) { return c.rows > 0; });
  if (present < 2) {
    return MakeError(Code::kInvalidArgument, reason::kClassesTooFew, "labels",
                     absl::StrCat("expected rows of at least two classes, got ", CountOf(n_, "row"),
                                  " of ", CountOf(present, "class")),
                     {{"actual", absl::StrCat(present)}});
  }
  if (options_.folds > n_) {
    return MakeError(Code::kInvalidArgument, reason::kFoldsTooMany, "folds",
                     absl::StrCat("expected at least one row per fold, got ",
                                  CountOf(options_.folds, "fold"), " for ", CountOf(n_, "row")),
                     {{"actual", absl::StrCat(options_.folds)}, {"limit", absl::StrCat(n_)}});
  }
  return absl::OkStatus();
}

absl::Status Run::RunFold(int fold) {
  PHIMAP_RETURN_IF_ERROR(Report(fold, 0));
  RowSplit split = options_.folds == 0 ? HeldOutSplit(n_, options_.held_out, options_.seed)
                                       : FoldSplit(n_, options_.folds, fold, options_.seed);
  ReorderRows(order_, split.order, labeled_.rows.view());
  order_ = split.order;
  labels_.resize(static_cast<size_t>(n_));
  for (int64_t i = 0; i < n_; ++i) labels_[i] = labeled_.labels[order_[i]];
  const TrainingSet training{labeled_.rows.view().Rows(0, split.trained),
                             absl::MakeConstSpan(labels_).first(split.trained),
                             labeled_.class_count};
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Model> model,
                          learner_.Train(training, options_.seed, [&](double share) {
                            return Report(fold, kLearningShare * share);
                          }));
  Evaluation::Fold result{split.trained, split.tested(), 0, 0, model->Summary()};
  std::vector<bool> seen(static_cast<size_t>(labeled_.class_count));
  for (const int32_t label : training.labels) seen[label] = true;
  for (size_t k = 0; k < seen.size(); ++k) {
    if (!seen[k] && out_.classes[k].rows > 0) ++result.unseen_classes;
  }
  out_.folds.push_back(std::move(result));
  separators_.reset();
  if (model->linear() != nullptr) {
    separators_ = SeparatorsOf(*model->linear());
    out_.intercept_scale = model->linear()->bias;
  }
  PHIMAP_RETURN_IF_ERROR(ScoreRows(*model, fold, split));
  if (!fold_margins_.empty()) Certify();
  return absl::OkStatus();
}

// Scores the tested rows. Also scores the rows that the model was trained on if the margins of all
// rows are needed.
absl::Status Run::ScoreRows(const Model& model, int fold, const RowSplit& split) {
  fold_margins_.clear();
  fold_tested_margins_.clear();
  const bool all = separators_.has_value() && !labeled_.self_kernel.empty();
  const int64_t first = all ? 0 : split.trained;
  Matrix<double> scores(std::min(kRowsPerScoring, n_ - first), model.class_count());
  for (int64_t begin = first; begin < n_; begin += kRowsPerScoring) {
    const int64_t count = std::min(kRowsPerScoring, n_ - begin);
    const auto part = [&](double share) {
      const double done =
          (static_cast<double>(begin - first) + share * static_cast<double>(count)) /
          static_cast<double>(n_ - first);
      return Report(fold, kLearningShare + (1 - kLearningShare) * done);
    };
    PHIMAP_RETURN_IF_ERROR(
        model.Scores(labeled_.rows.view().Rows(begin, count), scores.view().Rows(0, count), part));
    for (int64_t i = 0; i < count; ++i) TakeRow(model, split, begin + i, scores.row(i));
  }
  return absl::OkStatus();
}

void Run::TakeRow(const Model& model, const RowSplit& split, int64_t i, const double* scores) {
  const int64_t classes = model.class_count();
  const bool tested = i >= split.trained;
  if (tested) {
    const auto predicted = std::max_element(scores, scores + classes) - scores;
    ++confusion_[static_cast<size_t>(labels_[i] * classes + predicted)];
    if (predicted != labels_[i]) ++out_.folds.back().errors;
  }
  if (!separators_.has_value()) return;
  if (classes == 2) {
    TakeMargins(i, tested, {(scores[1] - scores[0]) / 2});
  } else {
    TakeMargins(i, tested, absl::MakeConstSpan(scores, static_cast<size_t>(classes)));
  }
}

void Run::TakeMargins(int64_t i, bool tested, absl::Span<const double> scores) {
  if (tested) {
    margins_.push_back(NormalisedMargin(*separators_, scores,
                                        SquaredLength(labeled_.rows.row(i), labeled_.rows.cols()),
                                        labels_[i]));
    unnormalised_margins_.push_back(UnnormalisedMargin(*separators_, scores, labels_[i]));
  }
  if (labeled_.self_kernel.empty()) return;
  const auto row = static_cast<size_t>(order_[i]);
  const double margin = CertainMargin(*separators_, scores, labeled_.self_kernel[row],
                                      labeled_.rounding[row], labels_[i]);
  fold_margins_.push_back(margin);
  if (!tested) return;
  fold_tested_margins_.push_back(margin);
  kernel_margins_.push_back(margin);
}

void Run::Certify() {
  std::sort(fold_margins_.begin(), fold_margins_.end());
  std::sort(fold_tested_margins_.begin(), fold_tested_margins_.end());
  // Probability of failure for one statement. The permitted total is 1 − confidence. It is divided
  // equally among the folds and all α except 0. For α = 0 there is no statement about the
  // distribution.
  const double doubt =
      (1 - options_.confidence) / (folds_ * static_cast<double>(kCertifiedAlphas.size() - 1));
  const bool first = out_.certified.empty();
  if (first) out_.certified.resize(kCertifiedAlphas.size());
  for (size_t a = 0; a < kCertifiedAlphas.size(); ++a) {
    CertifiedMargin& certified = out_.certified[a];
    certified.alpha = kCertifiedAlphas[a];
    const double of_rows = MarginOfRows(fold_margins_, certified.alpha);
    certified.rows_margin = first ? of_rows : std::max(certified.rows_margin, of_rows);
    const std::optional<double> margin =
        MarginOfDistribution(fold_tested_margins_, certified.alpha, doubt);
    if (margin.has_value()) {
      certified.margin = std::max(certified.margin.value_or(*margin), *margin);
    }
  }
}

void Run::CountUp() {
  const int64_t classes = labeled_.class_count;
  for (int32_t actual = 0; actual < classes; ++actual) {
    for (int32_t predicted = 0; predicted < classes; ++predicted) {
      const int64_t count = confusion_[static_cast<size_t>(actual * classes + predicted)];
      if (count == 0) continue;
      out_.confusion.push_back({actual, predicted, count});
      out_.classes[actual].tested_rows += count;
      out_.classes[predicted].predicted += count;
      if (actual == predicted) out_.classes[actual].correct += count;
    }
  }
  out_.rows = n_;
  for (const Evaluation::Fold& fold : out_.folds) {
    out_.tested_rows += fold.tested_rows;
    out_.errors += fold.errors;
  }
  out_.error = static_cast<double>(out_.errors) / static_cast<double>(out_.tested_rows);
  out_.error_interval = BinomialInterval(out_.errors, out_.tested_rows, options_.confidence);
  out_.error_premise = std::string(options_.folds == 0 ? kHeldOutPremise : kFoldsPremise);
  if (folds_ == 1) {
    out_.error_standard_error =
        std::sqrt(out_.error * (1 - out_.error) / static_cast<double>(out_.tested_rows));
    return;
  }
  double sum = 0;
  double squares = 0;
  for (const Evaluation::Fold& fold : out_.folds) {
    sum += static_cast<double>(fold.errors) / static_cast<double>(fold.tested_rows);
  }
  for (const Evaluation::Fold& fold : out_.folds) {
    const double error = static_cast<double>(fold.errors) / static_cast<double>(fold.tested_rows);
    squares += (error - sum / folds_) * (error - sum / folds_);
  }
  out_.error_standard_error = std::sqrt(squares / (folds_ - 1) / folds_);
}

}  // namespace

absl::Status EvaluationOptions::Validate() const {
  if (folds != 0 && (folds < 2 || folds > kMaxFolds)) {
    return OutOfRange("folds", absl::StrCat("2..", kMaxFolds, ", or 0 for one split"),
                      absl::StrCat(folds));
  }
  if (folds == 0) PHIMAP_RETURN_IF_ERROR(CheckShare("held_out", held_out));
  return CheckShare("confidence", confidence);
}

absl::StatusOr<Evaluation> Evaluate(const Learner& learner, LabeledRows& labeled,
                                    const EvaluationOptions& options, EvaluationMonitor monitor) {
  return Run(learner, labeled, options, monitor).Finish();
}

}  // namespace phimap
