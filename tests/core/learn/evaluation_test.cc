// Compares an evaluation with the same evaluation done by hand: split, train, predict and measure
// row by row.
#include "core/learn/evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/learn/learner_spec.h"
#include "core/learn/margin.h"
#include "core/learn/row_order.h"
#include "core/status/error.h"
#include "core/theory/binomial.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

absl::Status Watch(int, double) { return absl::OkStatus(); }

// Returns separators that are simple to compute. The weights of a class are the mean of its rows,
// or 0 for a class without rows. If `bias` is not 0, the intercept of a class is minus half of the
// squared length of its weights.
LinearWeights MeansOf(ConstMatrixView<double> rows, absl::Span<const int32_t> labels,
                      int32_t classes, double bias) {
  LinearWeights linear{Matrix<double>(classes, rows.cols()),
                       std::vector<double>(static_cast<size_t>(classes)), bias};
  std::vector<double> counts(static_cast<size_t>(classes));
  for (int64_t i = 0; i < rows.rows(); ++i) {
    ++counts[labels[i]];
    for (int64_t j = 0; j < rows.cols(); ++j) linear.weights(labels[i], j) += rows(i, j);
  }
  for (int32_t y = 0; y < classes; ++y) {
    for (int64_t j = 0; j < rows.cols(); ++j) {
      double& w = linear.weights(y, j);
      if (counts[y] > 0) w /= counts[y];
      if (bias != 0) linear.intercepts[y] -= w * w / 2;
    }
  }
  return linear;
}

class MeansModel final : public Model {
 public:
  MeansModel(LinearWeights linear, bool tells) : linear_(std::move(linear)), tells_(tells) {}

  int64_t columns() const override { return linear_.weights.cols(); }
  int32_t class_count() const override { return static_cast<int32_t>(linear_.weights.rows()); }
  absl::Status Scores(ConstMatrixView<double> rows, MatrixView<double> scores,
                      Checkpoint checkpoint) const override {
    for (int64_t i = 0; i < rows.rows(); ++i) {
      for (int64_t y = 0; y < class_count(); ++y) {
        scores(i, y) = linear_.intercepts[y];
        for (int64_t j = 0; j < columns(); ++j) scores(i, y) += linear_.weights(y, j) * rows(i, j);
      }
    }
    return checkpoint(1);
  }
  const LinearWeights* linear() const override { return tells_ ? &linear_ : nullptr; }
  std::string Summary() const override { return "means"; }

 private:
  const LinearWeights linear_;
  const bool tells_;
};

class MeansLearner final : public Learner {
 public:
  explicit MeansLearner(double bias = 0, bool tells = true) : bias_(bias), tells_(tells) {}

  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t,
                                                     Checkpoint checkpoint) const override {
    for (const double share : {0.0, 0.5, 1.0}) {
      const absl::Status status = checkpoint(share);
      if (!status.ok()) return status;
    }
    return std::make_unique<const MeansModel>(
        MeansOf(examples.rows, examples.labels, examples.class_count, bias_), tells_);
  }

 private:
  const double bias_;
  const bool tells_;
};

// Returns rows scattered around one point for each class. Each row's K(x, x) is larger than its
// squared length.
LabeledRows Clouds(int64_t n, int32_t classes, uint64_t seed) {
  LabeledRows labeled;
  labeled.rows = NormalRows({.rows = n, .cols = 5, .seed = seed});
  labeled.class_count = classes;
  const Matrix<double> middles = NormalRows({.rows = classes, .cols = 5, .seed = seed + 100});
  for (int64_t i = 0; i < n; ++i) {
    labeled.labels.push_back(static_cast<int32_t>(i * 7 % 11 % classes));
    double length = 0.3;
    for (int64_t j = 0; j < 5; ++j) {
      labeled.rows(i, j) += middles(labeled.labels.back(), j);
      length += labeled.rows(i, j) * labeled.rows(i, j);
    }
    labeled.self_kernel.push_back(length);
    labeled.rounding.push_back(1e-3 * static_cast<double>(i % 3));
  }
  return labeled;
}

LabeledRows Copy(const LabeledRows& from) {
  return {from.rows.Clone(), from.labels, from.class_count, from.self_kernel, from.rounding};
}

// Returns a cosine. B is `bias`. If B is not 0, it is the cosine of the vectors (w, b/B) and (x,
// B). If B is 0, it is the cosine of w and x. `squared` is used in place of the squared length of
// x.
double Cosine(const double* w, double b, double bias, const double* x, int64_t columns,
              double squared) {
  double dot = b;
  double w_squared = bias == 0 ? 0 : b / bias * (b / bias);
  for (int64_t j = 0; j < columns; ++j) {
    dot += w[j] * x[j];
    w_squared += w[j] * w[j];
  }
  return dot / std::sqrt(w_squared * (squared + bias * bias));
}

// Returns a row's margin, computed by the definitions. With two classes of weights w_0 and w_1, it
// is the margin of the vector (w_1 − w_0)/2.
double NaiveMargin(const LinearWeights& linear, const double* x, int32_t label, double squared) {
  const int64_t columns = linear.weights.cols();
  const auto classes = static_cast<int32_t>(linear.weights.rows());
  if (classes == 2) {
    std::vector<double> w(static_cast<size_t>(columns));
    for (int64_t j = 0; j < columns; ++j) w[j] = (linear.weights(1, j) - linear.weights(0, j)) / 2;
    const double b = (linear.intercepts[1] - linear.intercepts[0]) / 2;
    return (label == 1 ? 1 : -1) * Cosine(w.data(), b, linear.bias, x, columns, squared);
  }
  double own = 0;
  double rival = -2;
  for (int32_t y = 0; y < classes; ++y) {
    const double cosine =
        Cosine(linear.weights.row(y), linear.intercepts[y], linear.bias, x, columns, squared);
    if (y == label) {
      own = cosine;
    } else {
      rival = std::max(rival, cosine);
    }
  }
  return own - rival;
}

// The result of one split, computed by hand.
struct ByHand {
  int64_t errors = 0;
  std::map<std::pair<int32_t, int32_t>, int64_t> confusion;
  std::vector<double> margins;
  std::vector<double> kernel_margins;
  std::vector<double> all_kernel_margins;
};
ByHand EvaluateByHand(const LabeledRows& data, const RowSplit& split, double bias) {
  Matrix<double> trained(split.trained, data.rows.cols());
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < split.trained; ++i) {
    std::copy_n(data.rows.row(split.order[i]), data.rows.cols(), trained.row(i));
    labels.push_back(data.labels[split.order[i]]);
  }
  const LinearWeights linear = MeansOf(trained.view(), labels, data.class_count, bias);
  ByHand result;
  for (size_t i = 0; i < split.order.size(); ++i) {
    const int64_t row = split.order[i];
    const double* x = data.rows.row(row);
    const int32_t label = data.labels[row];
    const double allowance =
        data.rounding[row] * (data.class_count == 2 ? 1 : 2) *
        std::sqrt(data.self_kernel[row] / (data.self_kernel[row] + bias * bias));
    result.all_kernel_margins.push_back(NaiveMargin(linear, x, label, data.self_kernel[row]) -
                                        allowance);
    if (static_cast<int64_t>(i) < split.trained) continue;
    result.kernel_margins.push_back(result.all_kernel_margins.back());
    double squared = 0;
    double highest = -1e300;
    int32_t best = 0;
    for (int64_t j = 0; j < data.rows.cols(); ++j) squared += x[j] * x[j];
    for (int32_t y = 0; y < data.class_count; ++y) {
      double score = linear.intercepts[y];
      for (int64_t j = 0; j < data.rows.cols(); ++j) score += linear.weights(y, j) * x[j];
      if (score > highest) {
        highest = score;
        best = y;
      }
    }
    result.margins.push_back(NaiveMargin(linear, x, label, squared));
    ++result.confusion[{label, best}];
    if (best != label) ++result.errors;
  }
  return result;
}

// Sums that are computed by hand add the terms in another order. The tolerance of 1e-12 allows
// hundreds of roundings of numbers of size 1.
void ExpectNear(const std::vector<double>& actual, std::vector<double> unsorted) {
  std::sort(unsorted.begin(), unsorted.end());
  const std::vector<double> expected = Percentiles(unsorted);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12) << i;
}

void ExpectConfusion(const Evaluation& evaluation,
                     const std::map<std::pair<int32_t, int32_t>, int64_t>& expected) {
  std::map<std::pair<int32_t, int32_t>, int64_t> actual;
  for (const Evaluation::Confusion& c : evaluation.confusion) {
    actual[{c.actual, c.predicted}] = c.count;
  }
  EXPECT_EQ(actual, expected);
  for (size_t y = 0; y < evaluation.classes.size(); ++y) {
    const auto label = static_cast<int32_t>(y);
    int64_t tested = 0;
    int64_t predicted = 0;
    for (const auto& [pair, count] : expected) {
      if (pair.first == label) tested += count;
      if (pair.second == label) predicted += count;
    }
    EXPECT_EQ(evaluation.classes[y].tested_rows, tested);
    EXPECT_EQ(evaluation.classes[y].predicted, predicted);
    EXPECT_EQ(evaluation.classes[y].correct, actual[std::make_pair(label, label)]);
  }
}

TEST(EvaluationTest, OneSplitIsWhatItIsByHand) {
  for (const int32_t classes : {2, 4}) {
    for (const double bias : {0.0, 2.0}) {
      const LabeledRows data = Clouds(211, classes, 7);
      LabeledRows labeled = Copy(data);
      const EvaluationOptions options{.held_out = 0.4, .seed = 3};
      const Evaluation evaluation = Evaluate(MeansLearner(bias), labeled, options, Watch).value();
      const ByHand expected = EvaluateByHand(data, HeldOutSplit(211, 0.4, 3), bias);
      EXPECT_EQ(evaluation.rows, 211);
      EXPECT_EQ(evaluation.tested_rows, 84);
      EXPECT_GT(expected.errors, 0);
      EXPECT_EQ(evaluation.errors, expected.errors);
      const double error = static_cast<double>(expected.errors) / 84;
      EXPECT_DOUBLE_EQ(evaluation.error, error);
      EXPECT_DOUBLE_EQ(evaluation.error_standard_error, std::sqrt(error * (1 - error) / 84));
      const ProbabilityInterval interval = BinomialInterval(expected.errors, 84, 0.95);
      EXPECT_EQ(evaluation.error_interval.low, interval.low);
      EXPECT_EQ(evaluation.error_interval.high, interval.high);
      EXPECT_THAT(evaluation.error_premise, HasSubstr("assumes that the tested rows were drawn"));
      EXPECT_EQ(evaluation.intercept_scale, bias);
      ExpectConfusion(evaluation, expected.confusion);
      ExpectNear(evaluation.margins, expected.margins);
      ExpectNear(evaluation.kernel_margins, expected.kernel_margins);
      ASSERT_THAT(evaluation.folds, SizeIs(1));
      EXPECT_EQ(evaluation.folds[0].trained_rows, 127);
      EXPECT_EQ(evaluation.folds[0].summary, "means");
    }
  }
}

TEST(EvaluationTest, FoldsAreAsManySplitsThatTestEachRowOnce) {
  constexpr int kFolds = 5;
  const LabeledRows data = Clouds(203, 3, 8);
  LabeledRows labeled = Copy(data);
  const Evaluation evaluation =
      Evaluate(MeansLearner(), labeled, {.folds = kFolds, .seed = 1}, Watch).value();
  ByHand sum;
  std::vector<double> errors;
  for (int fold = 0; fold < kFolds; ++fold) {
    const RowSplit split = FoldSplit(203, kFolds, fold, 1);
    const ByHand one = EvaluateByHand(data, split, 0);
    EXPECT_EQ(evaluation.folds[static_cast<size_t>(fold)].errors, one.errors);
    EXPECT_EQ(evaluation.folds[static_cast<size_t>(fold)].tested_rows, split.tested());
    sum.errors += one.errors;
    errors.push_back(static_cast<double>(one.errors) / static_cast<double>(split.tested()));
    for (const auto& [pair, count] : one.confusion) sum.confusion[pair] += count;
    sum.margins.insert(sum.margins.end(), one.margins.begin(), one.margins.end());
  }
  EXPECT_EQ(evaluation.tested_rows, 203);
  EXPECT_EQ(evaluation.errors, sum.errors);
  ExpectConfusion(evaluation, sum.confusion);
  ExpectNear(evaluation.margins, sum.margins);
  double mean = 0;
  for (const double error : errors) mean += error / kFolds;
  double squares = 0;
  for (const double error : errors) squares += (error - mean) * (error - mean);
  EXPECT_NEAR(evaluation.error_standard_error, std::sqrt(squares / (kFolds - 1) / kFolds), 1e-12);
  const ProbabilityInterval interval = BinomialInterval(sum.errors, 203, 0.95);
  EXPECT_EQ(evaluation.error_interval.low, interval.low);
  EXPECT_EQ(evaluation.error_interval.high, interval.high);
  EXPECT_THAT(evaluation.error_premise, HasSubstr("approximate"));
  EXPECT_THAT(evaluation.error_premise, HasSubstr("share most of their training rows"));
}

// Two classes so far apart that no row is misclassified: the standard error is 0, but the interval
// is not, because 60 rows cannot show that a learner never errs.
TEST(EvaluationTest, NoErrorIsNoCertainty) {
  LabeledRows labeled = Clouds(200, 2, 3);
  for (int64_t i = 0; i < 200; ++i) labeled.rows(i, 0) += labeled.labels[i] == 0 ? 100 : -100;
  const Evaluation evaluation = Evaluate(MeansLearner(), labeled, {}, Watch).value();
  ASSERT_EQ(evaluation.errors, 0);
  EXPECT_EQ(evaluation.error_interval.low, 0);
  EXPECT_NEAR(evaluation.error_interval.high, 1 - std::pow(0.025, 1.0 / 60), 1e-12);
}

// Rows whose features may have lost all their digits: their margins are the least that exists.
TEST(EvaluationTest, MarginsStayInTheirRangeHoweverMuchIsAllowedForRounding) {
  for (const int32_t classes : {2, 4}) {
    LabeledRows labeled = Clouds(200, classes, 11);
    for (size_t i = 0; i < 200; i += 5) {
      labeled.rounding[i] = i % 2 == 0 ? 1.7 : std::numeric_limits<double>::infinity();
    }
    const Evaluation evaluation = Evaluate(MeansLearner(1), labeled, {}, Watch).value();
    const double least = classes == 2 ? -1 : -2;
    EXPECT_EQ(evaluation.kernel_margins.front(), least);
    EXPECT_EQ(evaluation.certified.front().rows_margin, least);
    EXPECT_GT(evaluation.kernel_margins[50], least);
    for (const double margin : evaluation.kernel_margins) EXPECT_LE(margin, -least);
  }
}

// Tests both margins that are certified for each α. The margin of the rows is computed by counting:
// at most ⌊αn⌋ of all n rows may have a smaller margin. The margin of the distribution is the
// largest MarginOfDistribution of the tested rows over the folds. For this, each fold gets an equal
// share of the failure probability.
TEST(EvaluationTest, WhatIsCertifiedIsTrueOfTheRowsAndSharesTheDoubt) {
  for (const int folds : {0, 3}) {
    const LabeledRows data = Clouds(900, 2, 9);
    LabeledRows labeled = Copy(data);
    const Evaluation evaluation =
        Evaluate(MeansLearner(1), labeled, {.folds = folds, .confidence = 0.9}, Watch).value();
    ASSERT_THAT(evaluation.certified, SizeIs(kCertifiedAlphas.size()));
    const int splits = std::max(1, folds);
    for (size_t a = 0; a < kCertifiedAlphas.size(); ++a) {
      const CertifiedMargin& certified = evaluation.certified[a];
      EXPECT_EQ(certified.alpha, kCertifiedAlphas[a]);
      double best_of_rows = -2;
      std::optional<double> best;
      for (int fold = 0; fold < splits; ++fold) {
        const RowSplit split =
            folds == 0 ? HeldOutSplit(900, 0.3, 0) : FoldSplit(900, folds, fold, 0);
        ByHand one = EvaluateByHand(data, split, 1);
        std::sort(one.all_kernel_margins.begin(), one.all_kernel_margins.end());
        best_of_rows =
            std::max(best_of_rows, MarginOfRows(one.all_kernel_margins, certified.alpha));
        std::sort(one.kernel_margins.begin(), one.kernel_margins.end());
        const auto margin =
            MarginOfDistribution(one.kernel_margins, certified.alpha, 0.1 / (10 * splits));
        if (margin.has_value()) best = std::max(best.value_or(-2), *margin);
      }
      EXPECT_NEAR(certified.rows_margin, best_of_rows, 1e-12);
      ASSERT_EQ(certified.margin.has_value(), best.has_value());
      if (best.has_value()) {
        EXPECT_NEAR(*certified.margin, *best, 1e-12);
      }
    }
    EXPECT_FALSE(evaluation.certified[0].margin.has_value());
    EXPECT_TRUE(evaluation.certified.back().margin.has_value());
  }
}

TEST(EvaluationTest, WithoutTheKernelsLengthsNothingIsCertified) {
  LabeledRows labeled = Clouds(100, 3, 1);
  labeled.self_kernel.clear();
  labeled.rounding.clear();
  const Evaluation evaluation = Evaluate(MeansLearner(), labeled, {}, Watch).value();
  EXPECT_THAT(evaluation.margins, SizeIs(101));
  EXPECT_THAT(evaluation.unnormalised_margins, SizeIs(101));
  EXPECT_THAT(evaluation.kernel_margins, IsEmpty());
  EXPECT_THAT(evaluation.certified, IsEmpty());
}

TEST(EvaluationTest, AModelWithoutWeightsHasErrorsAndNoMargins) {
  LabeledRows with = Clouds(100, 3, 1);
  LabeledRows without = Clouds(100, 3, 1);
  const Evaluation linear = Evaluate(MeansLearner(1), with, {}, Watch).value();
  const Evaluation other = Evaluate(MeansLearner(1, false), without, {}, Watch).value();
  EXPECT_EQ(other.errors, linear.errors);
  EXPECT_THAT(other.margins, IsEmpty());
  EXPECT_THAT(other.unnormalised_margins, IsEmpty());
  EXPECT_THAT(other.kernel_margins, IsEmpty());
  EXPECT_THAT(other.certified, IsEmpty());
}

// One fold tests the only row of class 2. This fold has no row from which to learn the class.
TEST(EvaluationTest, AClassThatCannotBeLearntFromIsCountedAndItsRowsAreErrors) {
  LabeledRows labeled = Clouds(40, 2, 3);
  labeled.class_count = 3;
  labeled.labels[17] = 2;  // the only row of class 2
  const Evaluation evaluation = Evaluate(MeansLearner(), labeled, {.folds = 4}, Watch).value();
  int64_t unseen = 0;
  for (const Evaluation::Fold& fold : evaluation.folds) unseen += fold.unseen_classes;
  EXPECT_EQ(unseen, 1);
  EXPECT_EQ(evaluation.classes[2].rows, 1);
  EXPECT_EQ(evaluation.classes[2].tested_rows, 1);
  EXPECT_EQ(evaluation.classes[2].correct, 0);
}

TEST(EvaluationTest, TheSameRowsAndOptionsGiveTheSameBits) {
  LabeledRows first = Clouds(100, 3, 1);
  LabeledRows second = Clouds(100, 3, 1);
  const EvaluationOptions options{.folds = 3, .seed = 4};
  const Evaluation a = Evaluate(MeansLearner(1), first, options, Watch).value();
  const Evaluation b = Evaluate(MeansLearner(1), second, options, Watch).value();
  EXPECT_EQ(a.margins, b.margins);
  EXPECT_EQ(a.kernel_margins, b.kernel_margins);
}

TEST(EvaluationTest, TheMonitorHearsEveryFoldAndCanStopIt) {
  LabeledRows labeled = Clouds(60, 2, 1);
  double last = 0;
  std::vector<int> heard;
  const auto watch = [&](int fold, double fraction) {
    EXPECT_GE(fraction, last);
    EXPECT_LE(fraction, 1);
    EXPECT_GE(fraction, fold / 3.0);
    last = fraction;
    if (heard.empty() || heard.back() != fold) heard.push_back(fold);
    return absl::OkStatus();
  };
  ASSERT_TRUE(Evaluate(MeansLearner(), labeled, {.folds = 3}, watch).ok());
  EXPECT_EQ(heard, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(last, 1);
  const auto stop = [](int fold, double) {
    return fold == 1 ? absl::CancelledError("enough") : absl::OkStatus();
  };
  EXPECT_EQ(Evaluate(MeansLearner(), labeled, {.folds = 3}, stop).status(),
            absl::CancelledError("enough"));
}

std::string ReasonOf(LabeledRows labeled, const EvaluationOptions& options) {
  const absl::Status status = Evaluate(MeansLearner(), labeled, options, Watch).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  const std::optional<ErrorDetail> detail = DetailOf(status);
  return detail.has_value() ? detail->reason + " " + detail->field : "";
}

TEST(EvaluationTest, WhatCannotBeEvaluatedIsRefusedByName) {
  LabeledRows one_class = Clouds(10, 2, 1);
  std::fill(one_class.labels.begin(), one_class.labels.end(), 1);
  EXPECT_EQ(ReasonOf(std::move(one_class), {}), "CLASSES_TOO_FEW labels");
  LabeledRows nothing;
  EXPECT_EQ(ReasonOf(std::move(nothing), {}), "CLASSES_TOO_FEW labels");
  EXPECT_EQ(ReasonOf(Clouds(10, 2, 1), {.folds = 11}), "FOLDS_TOO_MANY folds");
  EXPECT_EQ(ReasonOf(Clouds(10, 2, 1), {.folds = 1}), "FIELD_OUT_OF_RANGE folds");
  EXPECT_EQ(ReasonOf(Clouds(10, 2, 1), {.folds = 101}), "FIELD_OUT_OF_RANGE folds");
  EXPECT_EQ(ReasonOf(Clouds(10, 2, 1), {.folds = -2}), "FIELD_OUT_OF_RANGE folds");
  for (const double share : {0.0, 1.0, -0.5, std::nan("")}) {
    EXPECT_EQ(ReasonOf(Clouds(10, 2, 1), {.held_out = share}), "FIELD_OUT_OF_RANGE held_out");
    EXPECT_EQ(ReasonOf(Clouds(10, 2, 1), {.confidence = share}), "FIELD_OUT_OF_RANGE confidence");
  }
  EXPECT_TRUE(EvaluationOptions({.held_out = 0, .folds = 2}).Validate().ok());
}

// ridge chooses its alpha among the training rows of each fold, and its margins are those of its
// separators.
TEST(EvaluationTest, RidgeIsEvaluatedAsAnyLearner) {
  const std::unique_ptr<const Learner> ridge =
      MakeLearner(LearnerSpec::Parse("ridge()").value()).value();
  LabeledRows rows = Clouds(400, 3, 5);
  const Evaluation evaluation =
      Evaluate(*ridge, rows, {.folds = 4}, [](int, double) { return absl::OkStatus(); }).value();
  EXPECT_EQ(evaluation.tested_rows, 400);
  EXPECT_LT(evaluation.error, 0.3);
  EXPECT_EQ(evaluation.intercept_scale, 1);
  EXPECT_EQ(evaluation.certified.size(), kCertifiedAlphas.size());
  for (const Evaluation::Fold& fold : evaluation.folds) {
    EXPECT_THAT(fold.summary, MatchesRegex("alpha=.*, the best of 18 on 60 rows"));
  }
}

}  // namespace
}  // namespace phimap::testing
