// Tests ridge regression against its normal equations, solved by elimination in long double.
#include "core/learn/ridge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/kernel/call_syntax.h"
#include "core/learn/learner_type.h"
#include "gtest/gtest.h"
#include "tests/core/learn/labeled_data.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

using Part = RidgeTraining::Part;
using Column = std::vector<long double>;

// Solves a·x = b by elimination with row pivots.
Column Eliminate(std::vector<Column> a, Column b) {
  const size_t n = b.size();
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k; i < n; ++i) {
      if (std::abs(a[i][k]) > std::abs(a[pivot][k])) pivot = i;
    }
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    for (size_t i = k + 1; i < n; ++i) {
      const long double factor = a[i][k] / a[k][k];
      for (size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (size_t k = n; k-- > 0;) {
    for (size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

struct NaiveRidge {
  Column w;
  long double mean = 0;

  long double At(const double* row) const {
    long double sum = mean;
    for (size_t k = 0; k < w.size(); ++k) sum += w[k] * row[k];
    return sum;
  }
};

NaiveRidge SolveNaively(const Matrix<double>& rows, const std::vector<double>& targets,
                        const std::vector<double>& weights, double alpha) {
  const auto d = static_cast<size_t>(rows.cols());
  NaiveRidge out;
  long double total = 0;
  for (int64_t i = 0; i < rows.rows(); ++i) {
    total += weights[i];
    out.mean += static_cast<long double>(weights[i]) * targets[i];
  }
  out.mean /= total;
  std::vector<Column> a(d, Column(d));
  Column b(d);
  for (size_t j = 0; j < d; ++j) a[j][j] = alpha;
  for (int64_t i = 0; i < rows.rows(); ++i) {
    for (size_t j = 0; j < d; ++j) {
      const long double weighted = static_cast<long double>(weights[i]) * rows(i, j);
      for (size_t k = 0; k < d; ++k) a[j][k] += weighted * rows(i, k);
      b[j] += weighted * (targets[i] - out.mean);
    }
  }
  out.w = Eliminate(std::move(a), std::move(b));
  return out;
}

// The target of class y is 1 for its rows, and −1 for others.
std::vector<double> TargetsOf(const std::vector<int32_t>& labels, int32_t y) {
  std::vector<double> targets;
  for (const int32_t label : labels) targets.push_back(label == y ? 1 : -1);
  return targets;
}

std::vector<double> RandomWeights(int64_t n, uint64_t seed) {
  const Matrix<double> uniform = UniformRows({.rows = n, .cols = 1, .seed = seed});
  std::vector<double> weights(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) weights[i] = i % 9 == 0 ? 0 : 1.5 + uniform(i, 0);
  return weights;
}

// Matrices of these tests have eigenvalues between alpha >= 0.1 and about 2,000, so the solutions
// err by about 1e4·2⁻⁵³·d relative to their length.
constexpr double kTolerance = 1e-9;

void ExpectIsNaive(const ScoreWeights& actual, int64_t score, const NaiveRidge& expected) {
  ASSERT_EQ(actual.weights.rows(), static_cast<int64_t>(expected.w.size()));
  EXPECT_NEAR(actual.intercepts[score], static_cast<double>(expected.mean), kTolerance);
  for (int64_t k = 0; k < actual.weights.rows(); ++k) {
    EXPECT_NEAR(actual.weights(k, score), static_cast<double>(expected.w[k]), kTolerance) << k;
  }
}

RidgeFit MustSolve(RidgeTraining& training, const RidgeTraining::Finish& finish = {}) {
  absl::StatusOr<RidgeFit> fit = training.Solve(finish, NeverStop);
  EXPECT_TRUE(fit.ok()) << fit.status();
  return fit.ok() ? *std::move(fit) : RidgeFit();
}

void MustAdd(RidgeTraining& training, Part part, const LabeledRows& rows,
             absl::Span<const double> weights = {}) {
  const absl::Status status =
      training.Add(part, ConstMatrixView<double>(rows.rows.view()),
                   {.labels = rows.labels, .targets = rows.targets, .weights = weights}, NeverStop);
  EXPECT_TRUE(status.ok()) << status;
}

TEST(RidgeTest, ANumberIsTheSolutionOfTheWeightedNormalEquations) {
  const LabeledRows rows = NoisyNumbers(700, 12, 1);
  for (const bool weighted : {false, true}) {
    const std::vector<double> weights =
        weighted ? RandomWeights(700, 5) : std::vector<double>(700, 1.0);
    RidgeTraining training({.alpha = 0.1}, HeadTask::kNumbers, 12);
    MustAdd(training, Part::kTrain, rows, weights);
    ExpectIsNaive(MustSolve(training).scores, 0,
                  SolveNaively(rows.rows, rows.targets, weights, 0.1));
  }
}

TEST(RidgeTest, Float32FeaturesLoseNothing) {
  const Matrix<float> narrow = UniformFloatRows({.rows = 300, .cols = 20, .seed = 4});
  LabeledRows wide = NoisyNumbers(300, 20, 4);
  wide.rows = Converted<double, float>(narrow.view());
  RidgeTraining training({.alpha = 0.5}, HeadTask::kNumbers, 20);
  EXPECT_TRUE(training
                  .Add(Part::kTrain, ConstMatrixView<float>(narrow.view()),
                       {.targets = wide.targets}, NeverStop)
                  .ok());
  RidgeTraining of_wide({.alpha = 0.5}, HeadTask::kNumbers, 20);
  MustAdd(of_wide, Part::kTrain, wide);
  EXPECT_TRUE(SameBits(MustSolve(training).scores.weights, MustSolve(of_wide).scores.weights));
}

// A weight of a class is one of each of its rows. "balanced" is n/(c·n_y), and classes without rows
// do not count.
TEST(RidgeTest, ClassesAreTheSolutionsForTheirIndicators) {
  const struct {
    const char* class_weight;
    int32_t classes;
    int32_t classes_with_rows;
  } kCases[] = {{"", 2, 2},
                {"", 3, 3},
                {"", 4, 3},
                {", class_weight=[1, 5, 0.5]", 3, 3},
                {", class_weight=balanced", 2, 2},
                {", class_weight=balanced", 4, 3}};
  for (const auto& c : kCases) {
    SCOPED_TRACE(absl::StrCat(c.classes, c.class_weight));
    LabeledRows rows = NoisyRows(600, 9, c.classes_with_rows, 6);
    rows.classes = c.classes;
    const LearnerSpec spec =
        LearnerSpec::Parse(absl::StrCat("ridge(alpha=0.1", c.class_weight, ")")).value();
    std::vector<double> of_class(static_cast<size_t>(c.classes), 1.0);
    if (spec.values.Has("class_weight")) {
      of_class = spec.values.Numbers("class_weight");
      of_class.resize(static_cast<size_t>(c.classes), 1.0);
    }
    if (spec.values.Word("class_weight") == "balanced") {
      for (int32_t y = 0; y < c.classes_with_rows; ++y) {
        const auto count =
            static_cast<double>(std::count(rows.labels.begin(), rows.labels.end(), y));
        of_class[y] = 600 / (c.classes_with_rows * count);
      }
    }
    std::vector<double> weights;
    for (const int32_t label : rows.labels) weights.push_back(of_class[label]);
    const std::unique_ptr<RidgeTraining> training =
        spec.type->begin_one_pass(spec.values, HeadTask::kClasses, 9, RidgeTraining::kUnlimited);
    MustAdd(*training, Part::kTrain, rows);
    const RidgeFit fit = MustSolve(*training, {.class_count = c.classes});
    const ScoreWeights learned = ToScores(*MustTrain(spec.ToText(), rows, 1)->linear());
    const int32_t first = c.classes == 2 ? 1 : 0;
    ASSERT_EQ(fit.scores.weights.cols(), c.classes - first);
    for (int32_t y = first; y < c.classes; ++y) {
      const NaiveRidge expected = SolveNaively(rows.rows, TargetsOf(rows.labels, y), weights, 0.1);
      ExpectIsNaive(fit.scores, y - first, expected);
      ExpectIsNaive(learned, y - first, expected);
    }
  }
}

TEST(RidgeTest, AWeightOfTwoIsTheRowTwice) {
  const LabeledRows rows = NoisyNumbers(60, 4, 2);
  RidgeTraining twice({.alpha = 1}, HeadTask::kNumbers, 4);
  MustAdd(twice, Part::kTrain, rows);
  MustAdd(twice, Part::kTrain, rows);
  RidgeTraining heavy({.alpha = 1}, HeadTask::kNumbers, 4);
  MustAdd(heavy, Part::kTrain, rows, std::vector<double>(60, 2.0));
  EXPECT_LE(LargestDifference(MustSolve(twice).scores.weights, MustSolve(heavy).scores.weights),
            1e-13);
}

// A target of 1e8 + t has the same weights as t. Sums of squares of such targets would have lost
// all digits of the scale.
TEST(RidgeTest, TargetsFarFromZeroLoseNoDigits) {
  const LabeledRows rows = NoisyNumbers(300, 5, 8);
  LabeledRows far = NoisyNumbers(300, 5, 8);
  for (double& target : far.targets) target += 1e8;
  RidgeTraining training({.alpha = 1}, HeadTask::kNumbers, 5);
  MustAdd(training, Part::kTrain, rows);
  RidgeTraining of_far({.alpha = 1}, HeadTask::kNumbers, 5);
  MustAdd(of_far, Part::kTrain, far);
  const RidgeFit near_fit = MustSolve(training, {.variance = true});
  const RidgeFit far_fit = MustSolve(of_far, {.variance = true});
  // The targets themselves are rounded to 1.5e-8 there.
  EXPECT_NEAR(far_fit.scores.intercepts[0] - 1e8, near_fit.scores.intercepts[0], 1e-7);
  EXPECT_LE(LargestDifference(far_fit.scores.weights, near_fit.scores.weights), 1e-7);
  EXPECT_NEAR(far_fit.variance.scale, near_fit.variance.scale, 1e-7 * near_fit.variance.scale);
}

TEST(RidgeTest, PartsAndThreadsDoNotChangeTheBits) {
  const LabeledRows rows = NoisyNumbers(1000, 300, 3);
  const auto solve = [&](int64_t block, int threads) {
    RidgeTraining training({.alpha = 1}, HeadTask::kNumbers, 300);
    for (int64_t first = 0; first < 1000; first += block) {
      const int64_t count = std::min<int64_t>(block, 1000 - first);
      const auto many = [&] { return threads; };
      EXPECT_TRUE(training
                      .Add(Part::kTrain,
                           ConstMatrixView<double>(rows.rows.view()).Rows(first, count),
                           {.targets = absl::MakeConstSpan(rows.targets).subspan(first, count)},
                           TileControl(many, NeverStop))
                      .ok());
    }
    return MustSolve(training).scores.weights;
  };
  const Matrix<double> whole = solve(1000, 1);
  EXPECT_TRUE(SameBits(solve(1, 1), whole));
  EXPECT_TRUE(SameBits(solve(333, 3), whole));
}

// The first row is 1. The squares of the others add up to just under 2⁻⁵³ for each block, which is
// lost when it is added to 1. The bound of ridge_moments.h allows 260 for the block and 1 for each
// of the 1,000 blocks, in units of 2⁻⁵³; with 1/2 for each block it would fail.
TEST(RidgeTest, TheGramMatrixErrsByNoMoreThanItsBoundWhichIsReached) {
  constexpr int64_t kBlocks = 1000;
  constexpr int64_t kRows = kBlocks * kGramRows;
  Matrix<double> rows(kRows, 1);
  long double exact = 1;
  const double small = std::sqrt(0.999 * 0x1p-53 / kGramRows);
  rows(0, 0) = 1;
  for (int64_t i = kGramRows; i < kRows; ++i) {
    rows(i, 0) = small;
    exact += static_cast<long double>(small) * small;
  }
  RidgeMoments moments(HeadTask::kNumbers, 1, /*gram_of_each_class=*/false);
  ASSERT_TRUE(moments
                  .Add(ConstMatrixView<double>(rows.view()),
                       {.targets = std::vector<double>(kRows)}, NeverStop)
                  .ok());
  ASSERT_TRUE(moments.Flush(NeverStop).ok());
  Matrix<double> scratch;
  const long double error =
      std::abs(moments.WeightedGram(std::vector<double>{1}, scratch)(0, 0) - exact) / exact;
  EXPECT_LE(error, (kGramRows + 4 + kBlocks) * 0x1p-53L);
  EXPECT_GT(error, (kGramRows + 4 + kBlocks / 2) * 0x1p-53L);
}

// The squared errors on validation rows, computed row by row, decide. Both parts and the mean of
// the training targets are in it.
TEST(RidgeTest, AutoIsTheAlphaOfLeastErrorOnValidationRows) {
  for (const bool numbers : {true, false}) {
    LabeledRows train = numbers ? NoisyNumbers(40, 15, 31) : NoisyRows(40, 15, 3, 31);
    LabeledRows validate = numbers ? NoisyNumbers(50, 15, 31) : NoisyRows(50, 15, 3, 31);
    const int scores = numbers ? 1 : 3;
    RidgeTraining training({}, numbers ? HeadTask::kNumbers : HeadTask::kClasses, 15);
    MustAdd(training, Part::kTrain, train);
    MustAdd(training, Part::kValidate, validate);
    const RidgeFit fit =
        MustSolve(training, {.class_count = numbers ? 0 : 3, .learn_from_validation = false});
    ASSERT_EQ(fit.trials.size(), 18u);
    double least = std::numeric_limits<double>::infinity();
    double best = 0;
    const std::vector<double> ones(40, 1.0);
    for (const RidgeFit::Trial& trial : fit.trials) {
      long double error = 0;
      for (int32_t y = 0; y < scores; ++y) {
        const NaiveRidge naive = SolveNaively(
            train.rows, numbers ? train.targets : TargetsOf(train.labels, y), ones, trial.alpha);
        const std::vector<double> truth =
            numbers ? validate.targets : TargetsOf(validate.labels, y);
        for (int64_t i = 0; i < 50; ++i) {
          const long double miss = naive.At(validate.rows.row(i)) - truth[i];
          error += miss * miss / 50;
        }
      }
      EXPECT_NEAR(trial.error, static_cast<double>(error), 1e-9 * static_cast<double>(error));
      if (trial.error >= least) continue;
      least = trial.error;
      best = trial.alpha;
    }
    EXPECT_EQ(fit.alpha, best);
    // Neither end of the grid, so that the choice is one.
    EXPECT_LT(fit.alpha, fit.trials.front().alpha);
    EXPECT_GT(fit.alpha, fit.trials.back().alpha);
  }
}

TEST(RidgeTest, ValidationRowsJoinTheTrainingRowsOnceAlphaIsChosen) {
  const LabeledRows first = NoisyNumbers(80, 6, 1);
  const LabeledRows second = NoisyNumbers(30, 6, 9);
  RidgeTraining training({}, HeadTask::kNumbers, 6);
  MustAdd(training, Part::kTrain, first);
  MustAdd(training, Part::kValidate, second);
  const RidgeFit chosen = MustSolve(training, {.variance = true});
  RidgeTraining all({.alpha = chosen.alpha}, HeadTask::kNumbers, 6);
  MustAdd(all, Part::kTrain, first);
  MustAdd(all, Part::kTrain, second);
  const RidgeFit expected = MustSolve(all, {.variance = true});
  EXPECT_LE(LargestDifference(chosen.scores.weights, expected.scores.weights), 1e-12);
  EXPECT_NEAR(chosen.scores.intercepts[0], expected.scores.intercepts[0], 1e-12);
  EXPECT_NEAR(chosen.variance.scale, expected.variance.scale, 1e-12 * expected.variance.scale);
}

// A stream numbers its classes as they come, and knows the order of their names at its end.
TEST(RidgeTest, ClassesAreRenumberedAtTheEnd) {
  LabeledRows rows = NoisyRows(300, 5, 3, 4);
  const std::vector<int32_t> numbers = {2, 0, 1};
  for (const char* text : {"ridge(alpha=1)", "ridge(alpha=1, class_weight=[1, 2, 3])"}) {
    const LearnerSpec spec = LearnerSpec::Parse(text).value();
    const std::unique_ptr<RidgeTraining> training =
        spec.type->begin_one_pass(spec.values, HeadTask::kClasses, 5, RidgeTraining::kUnlimited);
    MustAdd(*training, Part::kTrain, rows);
    const RidgeFit fit = MustSolve(*training, {.class_count = 3, .class_numbers = numbers});
    LabeledRows renumbered = NoisyRows(300, 5, 3, 4);
    for (int32_t& label : renumbered.labels) label = numbers[label];
    const std::unique_ptr<RidgeTraining> other =
        spec.type->begin_one_pass(spec.values, HeadTask::kClasses, 5, RidgeTraining::kUnlimited);
    MustAdd(*other, Part::kTrain, renumbered);
    EXPECT_LE(
        LargestDifference(fit.scores.weights, MustSolve(*other, {.class_count = 3}).scores.weights),
        1e-12);
  }
}

TEST(RidgeTest, WeightsOfClassesAreRefusedWithTheBytesThatTheyNeed) {
  RidgeOptions options{.alpha = 1};
  const LearnerSpec spec = LearnerSpec::Parse("ridge(class_weight=balanced)").value();
  options.class_weight = ClassWeight(spec.values);
  const auto limit = static_cast<int64_t>(RidgeTraining::Bytes(50, 2, true));
  RidgeTraining training(options, HeadTask::kClasses, 50, limit);
  const LabeledRows two = NoisyRows(30, 50, 2, 1);
  MustAdd(training, Part::kTrain, two);
  const LabeledRows three = NoisyRows(30, 50, 3, 1);
  const absl::Status status = training.Add(Part::kTrain, ConstMatrixView<double>(three.rows.view()),
                                           {.labels = three.labels}, NeverStop);
  EXPECT_THAT(status, IsError(StatusCode::kResourceExhausted, "BUILD_MEMORY_FULL", "class_weight",
                              HasSubstr("3 classes of 50 features")));
  EXPECT_EQ(DetailOf(status)->metadata.at("actual"),
            absl::StrCat(static_cast<int64_t>(RidgeTraining::Bytes(50, 3, true))));
  EXPECT_EQ(DetailOf(status)->metadata.at("limit"), absl::StrCat(limit));
}

TEST(RidgeTest, WhatCannotBeSolvedIsNamed) {
  const LabeledRows rows = NoisyNumbers(30, 4, 1);
  RidgeTraining unchosen({}, HeadTask::kNumbers, 4);
  MustAdd(unchosen, Part::kTrain, rows);
  EXPECT_THAT(unchosen.Solve({}, NeverStop).status(),
              IsError(StatusCode::kInvalidArgument, "ROWS_TOO_FEW", _, HasSubstr("alpha")));
  RidgeTraining empty({.alpha = 1}, HeadTask::kNumbers, 4);
  EXPECT_EQ(ReasonOf(empty.Solve({}, NeverStop).status()), "ROWS_TOO_FEW");
  EXPECT_EQ(ReasonOf(MustMake("ridge()")
                         ->Train(Every(NoisyRows(9, 4, 2, 1), 0, 9).set(), 1, NeverStop)
                         .status()),
            "ROWS_TOO_FEW");
  EXPECT_THAT(MustMake("ridge(class_weight=balanced)")->Train(rows.set(), 1, NeverStop).status(),
              IsError(StatusCode::kInvalidArgument, "PARAMETER_NOT_APPLICABLE", "class_weight"));
  // Two equal columns make G singular, and 1e-30 is lost beside its diagonal of about 30.
  LabeledRows equal = NoisyNumbers(30, 4, 1);
  for (int64_t i = 0; i < 30; ++i) equal.rows(i, 3) = equal.rows(i, 2);
  const absl::Status lost =
      MustMake("ridge(alpha=1e-30)")->Train(equal.set(), 1, NeverStop).status();
  EXPECT_THAT(lost, IsError(StatusCode::kInvalidArgument, "FIELD_OUT_OF_RANGE", "alpha"));
  EXPECT_TRUE(MustMake("ridge(alpha=1e-12)")->Train(equal.set(), 1, NeverStop).ok());
  RidgeTraining bad({.alpha = 1}, HeadTask::kNumbers, 4);
  const std::vector<double> endless(30, std::numeric_limits<double>::infinity());
  EXPECT_EQ(ReasonOf(bad.Add(Part::kTrain, ConstMatrixView<double>(rows.rows.view()),
                             {.targets = endless}, NeverStop)),
            "VALUE_NOT_FINITE");
}

TEST(RidgeTest, AlphasAreTheNumbersThatTheirTextsStandFor) {
  std::vector<std::string> texts;
  for (const double alpha : AlphaGrid(0.9)) texts.push_back(NumberToText(alpha));
  EXPECT_THAT(
      texts, ElementsAre("1e-04", "3e-04", "0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1", "3",
                         "10", "30", "100", "300", "1000", "3000", "10000", "30000"));
  EXPECT_EQ(AlphaGrid(2e6).front(), 100);
  EXPECT_EQ(AlphaGrid(2e-6).back(), 0.03);
  EXPECT_EQ(AlphaGrid(0).front(), 0.0001);
}

TEST(RidgeTest, OnlyRidgeLearnsWithoutAllRowsInMemory) {
  for (const LearnerType* type : LearnerTypes()) {
    EXPECT_EQ(type->needs_all_rows(), type->name != "ridge") << type->name;
  }
}

}  // namespace
}  // namespace phimap::testing
