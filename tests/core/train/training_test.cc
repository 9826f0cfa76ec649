// Tests training as a function from labeled rows and an artifact to an artifact.
#include "core/train/training.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/head/head_answers.h"
#include "core/head/report.h"
#include "core/plan/artifact.h"
#include "core/status/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

absl::Status Go() { return absl::OkStatus(); }

// A version of 20 landmarks on rows of three columns, ready for trainings.
class TrainingTest : public ::testing::Test {
 protected:
  TrainingTest()
      : built_(MustBuild(SpecOf("f2(landmarks=20, serving_type=float64)", "rbf(gamma=0.5)"),
                         UniformRows({.rows = 300, .cols = 3, .seed = 9}))) {
    Artifact artifact = DecodeArtifact(built_.bytes).value();
    engine_ = Engine::Load(artifact.plan).value();
    residual_ = Residual::Of(artifact.plan, artifact.provenance);
  }

  static TrainingSpec SpecFor(const std::string& learner = "ridge()", uint64_t seed = 1) {
    return {.learner = LearnerSpec::Parse(learner).value(), .task = std::nullopt, .seed = seed};
  }
  // Trains on the rows, in blocks of `block` rows (0: one block).
  absl::StatusOr<BuiltVersion> Train(const TrainingSpec& spec, const Matrix<double>& rows,
                                     const std::vector<std::string>& labels, int64_t block = 0,
                                     const std::vector<std::optional<Part>>& parts = {}) {
    Training training(*engine_, &*residual_, spec);
    if (block == 0) block = rows.rows();
    for (int64_t first = 0; first < rows.rows(); first += block) {
      const int64_t count = std::min(block, rows.rows() - first);
      TrainingBlock next{.rows = ExamplesView(WireRows(rows)).Slice(first, count)};
      next.labels.assign(labels.begin() + first, labels.begin() + first + count);
      if (!parts.empty()) next.parts.assign(parts.begin() + first, parts.begin() + first + count);
      const absl::Status added = training.Add(next, Go);
      if (!added.ok()) return added;
    }
    RecordingMonitor monitor;
    return training.Finish(built_.bytes, monitor);
  }
  BuiltVersion MustTrain(const TrainingSpec& spec, const Matrix<double>& rows,
                         const std::vector<std::string>& labels, int64_t block = 0,
                         const std::vector<std::optional<Part>>& parts = {}) {
    absl::StatusOr<BuiltVersion> trained = Train(spec, rows, labels, block, parts);
    EXPECT_TRUE(trained.ok()) << trained.status();
    return *std::move(trained);
  }
  static Head HeadOf(const BuiltVersion& version) {
    return DecodeHead(DecodeArtifact(version.bytes)->head).value();
  }
  static std::vector<std::string> SignLabels(const Matrix<double>& rows) {
    std::vector<std::string> labels;
    for (int64_t i = 0; i < rows.rows(); ++i) labels.push_back(rows(i, 0) > 0 ? "plus" : "minus");
    return labels;
  }
  static std::vector<std::string> SumLabels(const Matrix<double>& rows) {
    std::vector<std::string> labels;
    for (int64_t i = 0; i < rows.rows(); ++i) {
      labels.push_back(absl::StrCat(3 + rows(i, 0) - 2 * rows(i, 1)));
    }
    return labels;
  }

  const BuiltVersion built_;
  std::unique_ptr<const Engine> engine_;
  std::optional<Residual> residual_;
};

TEST_F(TrainingTest, TheFeaturesPartKeepsItsBytes) {
  const Matrix<double> rows = UniformRows({.rows = 500, .cols = 3});
  const BuiltVersion trained = MustTrain(SpecFor(), rows, SignLabels(rows));
  EXPECT_EQ(WithHead(trained.bytes, "", "").value(), built_.bytes);
  // A head is replaced by the next one.
  RecordingMonitor monitor;
  Training again(*engine_, &*residual_, SpecFor());
  const std::vector<std::string> labels = SignLabels(rows);
  TrainingBlock block{.rows = WireRows(rows)};
  block.labels.assign(labels.begin(), labels.end());
  ASSERT_TRUE(again.Add(block, Go).ok());
  EXPECT_EQ(again.Finish(trained.bytes, monitor)->bytes, trained.bytes);
}

TEST_F(TrainingTest, BlocksDoNotMatterAndTheSeedDoes) {
  const Matrix<double> rows = UniformRows({.rows = 700, .cols = 3});
  const std::vector<std::string> labels = SignLabels(rows);
  for (const char* learner : {"ridge()", "logistic(C=1)"}) {
    SCOPED_TRACE(learner);
    const std::string bytes = MustTrain(SpecFor(learner), rows, labels).bytes;
    EXPECT_EQ(MustTrain(SpecFor(learner), rows, labels, 7).bytes, bytes);
    EXPECT_NE(MustTrain(SpecFor(learner, 2), rows, labels).bytes, bytes);
  }
}

// With alpha and the parts given, the weights solve (ΦᵀΦ + αI)·w = Φᵀ(y − ȳ), with all rows of the
// parts train and validate, and the intercept is ȳ.
TEST_F(TrainingTest, WeightsOfRidgeSolveTheNormalEquations) {
  const Matrix<double> rows = UniformRows({.rows = 260, .cols = 3});
  const std::vector<std::string> labels = SumLabels(rows);
  std::vector<std::optional<Part>> parts(260, Part::kTrain);
  for (int i = 200; i < 260; ++i) {
    parts[i] = i < 220 ? Part::kTest : i < 240 ? Part::kCalibrateSets : Part::kCalibrateLink;
  }
  const double alpha = 0.25;
  const Head head = HeadOf(MustTrain(SpecFor("ridge(alpha=0.25)"), rows, labels, 0, parts));
  const Matrix<double> features = FeaturesFrom(built_, rows);
  const int64_t d = features.cols();
  ASSERT_EQ(head.weights.rows(), d);
  double mean = 0;
  for (int i = 0; i < 200; ++i) mean += std::stod(labels[i]) / 200;
  EXPECT_NEAR(head.intercepts[0], mean, 1e-12);
  for (int64_t j = 0; j < d; ++j) {
    double left = alpha * head.weights(j, 0), right = 0;
    for (int64_t i = 0; i < 200; ++i) {
      double answer = 0;
      for (int64_t k = 0; k < d; ++k) answer += features(i, k) * head.weights(k, 0);
      left += features(i, j) * answer;
      right += features(i, j) * (std::stod(labels[i]) - mean);
    }
    EXPECT_NEAR(left, right, 1e-9);
  }
}

// The C with the least loss on validation rows wins, and the head is that of a training with this
// C.
TEST_F(TrainingTest, ValidationRowsChooseC) {
  const Matrix<double> rows = UniformRows({.rows = 900, .cols = 3});
  std::vector<std::string> signs;
  for (int64_t i = 0; i < 900; ++i) signs.push_back(rows(i, 0) * rows(i, 1) > 0 ? "same" : "not");
  for (const std::string learner : {"logistic", "linear_svm", "svr"}) {
    SCOPED_TRACE(learner);
    const std::vector<std::string> labels = learner == "svr" ? SumLabels(rows) : signs;
    const Head chosen = HeadOf(MustTrain(SpecFor(learner + "(C=auto)"), rows, labels));
    const TrainingReport report = DecodeReport(chosen.report).value();
    ASSERT_TRUE(report.choice.has_value());
    EXPECT_EQ(report.choice->parameter, "C");
    EXPECT_EQ(report.choice->candidates.size(), 6);
    EXPECT_GT(report.parts[Part::kValidate], 0);
    const auto best =
        std::min_element(report.choice->candidates.begin(), report.choice->candidates.end(),
                         [](const auto& a, const auto& b) { return a.loss < b.loss; });
    EXPECT_EQ(best->value, report.choice->chosen);
    EXPECT_GT(report.choice->candidates.front().loss, best->loss);
    const std::string given = absl::StrCat(learner, "(C=", report.choice->chosen, ")");
    const Head same = HeadOf(MustTrain(SpecFor(given), rows, labels));
    EXPECT_EQ(chosen.learner_text, same.learner_text);
    ASSERT_EQ(chosen.weights.size(), same.weights.size());
    for (int64_t i = 0; i < same.weights.size(); ++i) {
      EXPECT_EQ(chosen.weights.data()[i], same.weights.data()[i]);
    }
  }
}

TEST_F(TrainingTest, TheReportIsAboutTheTestRowsAlone) {
  const Matrix<double> rows = UniformRows({.rows = 400, .cols = 3});
  std::vector<std::string> labels = SignLabels(rows);
  std::vector<std::optional<Part>> parts(400, Part::kTrain);
  for (int i = 300; i < 400; ++i) {
    constexpr Part kOthers[] = {Part::kValidate, Part::kCalibrateLink, Part::kCalibrateSets,
                                Part::kTest};
    parts[i] = kOthers[(i - 300) / 25];
    // All test labels are wrong, and no others.
    if (i >= 375) labels[i] = labels[i] == "plus" ? "minus" : "plus";
  }
  const BuiltVersion trained = MustTrain(SpecFor(), rows, labels, 0, parts);
  const TrainingReport report = DecodeReport(HeadOf(trained).report).value();
  EXPECT_EQ(report.parts[Part::kTrain], 300);
  EXPECT_EQ(report.parts[Part::kTest], 25);
  ASSERT_TRUE(report.classes.has_value());
  EXPECT_EQ(report.classes->rows, 25);
  EXPECT_GT(report.classes->errors, 20);
  ASSERT_EQ(report.baselines.size(), 2);
  EXPECT_THAT(report.baselines[0].name, HasSubstr("raw"));
}

TEST_F(TrainingTest, TheTaskIsToldByTheFirstLabels) {
  const Matrix<double> rows = UniformRows({.rows = 400, .cols = 3});
  const auto labels_of = [&](auto&& label) {
    std::vector<std::string> labels;
    for (int i = 0; i < 400; ++i) labels.push_back(label(i));
    return labels;
  };
  const auto head = [&](auto&& label) {
    return HeadOf(MustTrain(SpecFor(), rows, labels_of(label)));
  };
  EXPECT_EQ(head([](int i) { return i % 2 ? "a" : "1"; }).task, HeadTask::kClasses);
  const Head integers = head([](int i) { return absl::StrCat(9 + i % 3); });
  EXPECT_EQ(integers.task, HeadTask::kClasses);
  EXPECT_TRUE(integers.integer_classes);
  EXPECT_THAT(integers.classes, ElementsAre("9", "10", "11"));
  EXPECT_EQ(head([](int i) { return absl::StrCat(i * 0.37); }).task, HeadTask::kNumbers);
  const absl::Status unclear =
      Train(SpecFor(), rows, labels_of([](int i) { return absl::StrCat(i % 4 + 0.5); })).status();
  EXPECT_EQ(ReasonOf(unclear), "TASK_UNCLEAR");
  EXPECT_EQ(DetailOf(unclear)->field, "spec.task");
  TrainingSpec numbers = SpecFor();
  numbers.task = HeadTask::kNumbers;
  EXPECT_EQ(
      ReasonOf(Train(numbers, rows, labels_of([](int i) { return i == 7 ? "x" : "1"; })).status()),
      "LABEL_INVALID");
}

// sd² = scale·(ρ(x) + noise·‖F(x)·R⁻¹‖² + noise).
TEST_F(TrainingTest, DeviationsAreThoseOfTheFormula) {
  const Matrix<double> rows = UniformRows({.rows = 500, .cols = 3});
  const BuiltVersion trained = MustTrain(SpecFor("ridge(alpha=0.5)"), rows, SumLabels(rows));
  Artifact artifact = DecodeArtifact(trained.bytes).value();
  Head head = DecodeHead(artifact.head).value();
  head.variance = DecodeVariance(artifact.head_variance).value();
  const HeadVariance variance = DecodeVariance(artifact.head_variance).value();
  EXPECT_EQ(variance.noise, 0.5);
  const auto answers = HeadAnswers::Load(std::move(artifact.plan), std::move(head), true).value();
  const Matrix<double> fresh = UniformRows({.rows = 20, .cols = 3, .seed = 77});
  const Matrix<double> features = FeaturesFrom(built_, fresh);
  std::vector<double> residuals(20);
  residual_->Compute(WireRows(fresh), features.data(), residuals.data(), nullptr);
  EngineScratch scratch;
  const Answers out =
      answers->Compute({.deviations = true}, WireRows(fresh), features.data(), &*residual_, scratch)
          .value();
  const int64_t d = features.cols();
  for (int64_t i = 0; i < 20; ++i) {
    double squares = 0;
    for (int64_t j = 0; j < d; ++j) {
      double sum = 0;
      for (int64_t k = 0; k <= j; ++k) {
        const int64_t place = k * d - k * (k - 1) / 2 + (j - k);
        sum += features(i, k) * variance.inverse_factor.data()[place];
      }
      squares += sum * sum;
    }
    const double expected = std::sqrt(variance.scale * (residuals[i] + 0.5 * squares + 0.5));
    EXPECT_NEAR(out.deviations[i], expected, 1e-9 * expected);
  }
}

TEST_F(TrainingTest, WhatCannotBeTrainedOnIsRefused) {
  const Matrix<double> rows = UniformRows({.rows = 300, .cols = 3});
  const auto reason = [&](const std::vector<std::string>& labels) {
    return ReasonOf(Train(SpecFor(), rows, labels).status());
  };
  EXPECT_EQ(reason(std::vector<std::string>(300, "one")), "CLASSES_TOO_FEW");
  std::vector<std::string> labels = SignLabels(rows);
  labels[40] = "bell\a";
  EXPECT_EQ(reason(labels), "LABEL_INVALID");
  labels = std::vector<std::string>(300, "1");
  labels[0] = "1.0";
  labels[1] = "x";
  EXPECT_EQ(reason(labels), "LABELS_EQUAL");
  RecordingMonitor monitor;
  EXPECT_EQ(
      ReasonOf(Training(*engine_, &*residual_, SpecFor()).Finish(built_.bytes, monitor).status()),
      "STREAM_EMPTY");
  EXPECT_EQ(ReasonOf(CheckTrainsHeads(SpecFor("kernel_svm()"))), "LEARNER_NOT_APPLICABLE");
}

// A training that builds its features. The parts of rows are given: of each ten rows, six are
// trained on, and one each validates, calibrates the link, calibrates sets and tests.
class FeaturesTest : public ::testing::Test {
 protected:
  FeaturesTest() : space_(::testing::TempDir(), int64_t{1} << 30) {}

  static Part PartOf(int64_t i) {
    return i % 10 < 6 ? Part::kTrain : static_cast<Part>(i % 10 - 5);
  }
  static FeaturesOrder OrderOf(const std::string& spec, const std::string& kernel,
                               bool learn_scales = false) {
    return {.spec = SpecOf(spec, kernel), .learn_scales = learn_scales, .tuning = std::nullopt};
  }
  static TrainingSpec Ridge(HeadTask task) {
    return {.learner = LearnerSpec::Parse("ridge()").value(), .task = task, .seed = 1};
  }
  absl::StatusOr<BuiltVersion> Train(const FeaturesOrder& order, const TrainingSpec& spec,
                                     const Matrix<double>& rows,
                                     const std::vector<std::string>& labels,
                                     BuildMonitor& monitor) {
    EXPECT_TRUE(order.Validate().ok()) << order.Validate();
    Training training(order, space_, spec);
    TrainingBlock block{.rows = WireRows(rows)};
    block.labels.assign(labels.begin(), labels.end());
    for (int64_t i = 0; i < rows.rows(); ++i) block.parts.emplace_back(PartOf(i));
    EXPECT_GT(training.BytesWith(block), 0);
    const absl::Status added = training.Add(block, Go);
    if (!added.ok()) return added;
    return training.Finish("", monitor);
  }
  BuiltVersion MustTrain(const FeaturesOrder& order, const TrainingSpec& spec,
                         const Matrix<double>& rows, const std::vector<std::string>& labels) {
    RecordingMonitor monitor;
    absl::StatusOr<BuiltVersion> trained = Train(order, spec, rows, labels, monitor);
    EXPECT_TRUE(trained.ok()) << trained.status();
    return *std::move(trained);
  }
  static Matrix<double> RowsOf(const Matrix<double>& rows, Part part) {
    std::vector<int64_t> chosen;
    for (int64_t i = 0; i < rows.rows(); ++i) {
      if (PartOf(i) == part) chosen.push_back(i);
    }
    Matrix<double> out = Matrix<double>::Uninit(std::ssize(chosen), rows.cols());
    for (size_t i = 0; i < chosen.size(); ++i) {
      std::copy_n(rows.row(chosen[i]), rows.cols(), out.row(static_cast<int64_t>(i)));
    }
    return out;
  }
  static std::vector<double> Bits(const Matrix<double>& matrix) {
    return {matrix.data(), matrix.data() + matrix.size()};
  }
  static TrainingReport ReportOf(const BuiltVersion& version) {
    return DecodeReport(DecodeHead(DecodeArtifact(version.bytes)->head)->report).value();
  }
  // The Friedman function with `noise` columns on which nothing depends, and its labels.
  static std::pair<Matrix<double>, std::vector<std::string>> Friedman(int64_t rows, int64_t columns,
                                                                      uint64_t seed) {
    Matrix<double> x = UniformRows({.rows = rows, .cols = columns, .seed = seed});
    const Matrix<double> noise = NormalRows({.rows = rows, .cols = 1, .seed = seed + 1});
    std::vector<std::string> labels;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) x(i, j) = (x(i, j) + 1) / 2;
      labels.push_back(absl::StrCat(10 * std::sin(M_PI * x(i, 0) * x(i, 1)) +
                                    20 * (x(i, 2) - 0.5) * (x(i, 2) - 0.5) + 10 * x(i, 3) +
                                    5 * x(i, 4) + noise(i, 0)));
    }
    return {std::move(x), std::move(labels)};
  }

  SpoolSpace space_;
};

TEST_F(FeaturesTest, TheFeaturesAreThoseOfABuildFromTheRowsThatAreTrainedOn) {
  const auto [rows, labels] = Friedman(700, 6, 3);
  for (const char* kernel : {"rbf(gamma=scale)", "laplacian(gamma=median)"}) {
    FeaturesOrder order = OrderOf("f2(landmarks=40, serving_type=float64)", kernel);
    order.spec.standardize = true;
    const BuiltVersion trained = MustTrain(order, Ridge(HeadTask::kNumbers), rows, labels);
    const BuiltVersion built = MustBuild(order.spec, RowsOf(rows, Part::kTrain));
    const Matrix<double> fresh = UniformRows({.rows = 30, .cols = 6, .seed = 9});
    EXPECT_EQ(Bits(FeaturesFrom(trained, fresh)), Bits(FeaturesFrom(built, fresh)));
    EXPECT_EQ(trained.provenance.kernel_text, built.provenance.kernel_text);
    // The head is that of a training on this version.
    const Artifact artifact = DecodeArtifact(built.bytes).value();
    const auto engine = Engine::Load(artifact.plan).value();
    const std::optional<Residual> residual = Residual::Of(artifact.plan, artifact.provenance);
    Training training(*engine, &*residual, Ridge(HeadTask::kNumbers));
    TrainingBlock block{.rows = WireRows(rows)};
    block.labels.assign(labels.begin(), labels.end());
    for (int64_t i = 0; i < rows.rows(); ++i) block.parts.emplace_back(PartOf(i));
    ASSERT_TRUE(training.Add(block, Go).ok());
    RecordingMonitor monitor;
    const BuiltVersion other = training.Finish(built.bytes, monitor).value();
    const Head ours = DecodeHead(DecodeArtifact(trained.bytes)->head).value();
    const Head theirs = DecodeHead(DecodeArtifact(other.bytes)->head).value();
    EXPECT_EQ(Bits(ours.weights), Bits(theirs.weights));
    EXPECT_EQ(ours.calibration.scores, theirs.calibration.scores);
    EXPECT_EQ(ours.report, theirs.report);
    EXPECT_THAT(trained.certificate.warnings, ::testing::Contains(HasSubstr("trained on")));
  }
  EXPECT_EQ(space_.used_bytes(), 0);
}

// No other row has any say in the features: not by its values, and not by its label.
TEST_F(FeaturesTest, HeldRowsDoNotTouchTheFeatures) {
  auto [rows, labels] = Friedman(700, 6, 3);
  FeaturesOrder order = OrderOf("f2(landmarks=40, serving_type=float64)", "rbf(gamma=scale)");
  order.spec.standardize = true;
  const BuiltVersion before = MustTrain(order, Ridge(HeadTask::kNumbers), rows, labels);
  for (int64_t i = 0; i < rows.rows(); ++i) {
    if (PartOf(i) == Part::kTrain) continue;
    for (int64_t j = 0; j < 6; ++j) rows(i, j) *= 3;
    labels[i] = absl::StrCat(i);
  }
  const BuiltVersion after = MustTrain(order, Ridge(HeadTask::kNumbers), rows, labels);
  EXPECT_EQ(WithHead(after.bytes, "", "").value(), WithHead(before.bytes, "", "").value());
  EXPECT_NE(after.bytes, before.bytes);
}

TEST_F(FeaturesTest, LearnersThatNeedAllRowsTrainOnBuiltFeaturesToo) {
  const Matrix<double> rows = UniformRows({.rows = 600, .cols = 3});
  std::vector<std::string> labels;
  for (int64_t i = 0; i < 600; ++i) labels.push_back(rows(i, 0) * rows(i, 1) > 0 ? "same" : "not");
  TrainingSpec spec{.learner = LearnerSpec::Parse("linear_svm(C=10)").value(),
                    .task = HeadTask::kClasses,
                    .seed = 1};
  const BuiltVersion trained =
      MustTrain(OrderOf("f2(landmarks=50)", "rbf(gamma=1)"), spec, rows, labels);
  EXPECT_LT(ReportOf(trained).classes->error.value, 0.15);
  EXPECT_GT(ReportOf(trained).baselines[0].error, 0.3);  // nothing is linear in the raw columns
}

// Twenty columns on which nothing depends, noise of deviation 1: learned scales bring the error of
// 2,000 rows to at most .7 of what it is without. It is about half, so a third is not reached.
TEST_F(FeaturesTest, LearnedScalesOverlookColumnsThatDoNotMatter) {
  const auto [rows, labels] = Friedman(2000, 25, 5);
  const auto rmse = [&](bool learn_scales) {
    const BuiltVersion trained =
        MustTrain(OrderOf("f2(landmarks=300)", "rbf(gamma=scale)", learn_scales),
                  Ridge(HeadTask::kNumbers), rows, labels);
    return ReportOf(trained).numbers->rmse.value;
  };
  const double without = rmse(false);
  const double with = rmse(true);
  EXPECT_LE(with, 0.7 * without);
  EXPECT_GT(with, 0.7 / 2.5 * without);
}

TEST_F(FeaturesTest, TuningFindsWhatIsBetterThanTheDefaultKernel) {
  const auto [rows, labels] = Friedman(900, 10, 5);
  FeaturesOrder order = OrderOf("f2(landmarks=1)", "rbf(gamma=scale)");
  order.tuning = TuningOptions{.budget = absl::Seconds(60), .max_landmarks = 250};
  const BuiltVersion tuned = MustTrain(order, Ridge(HeadTask::kNumbers), rows, labels);
  const TrainingReport report = ReportOf(tuned);
  const BuiltVersion plain = MustTrain(OrderOf("f2(landmarks=250)", "rbf(gamma=scale)"),
                                       Ridge(HeadTask::kNumbers), rows, labels);
  EXPECT_LT(report.numbers->rmse.value, 0.9 * ReportOf(plain).numbers->rmse.value);
  // The version is one of those that were tried, and none that was tried was better.
  ASSERT_FALSE(report.trials.empty());
  double least = std::numeric_limits<double>::infinity();
  const TuningTrial* best = nullptr;
  for (const TuningTrial& trial : report.trials) {
    EXPECT_EQ(trial.error.has_value(), !trial.spec.empty());
    if (!trial.error.has_value() || !(*trial.loss < least)) continue;
    least = *trial.loss;
    best = &trial;
  }
  ASSERT_NE(best, nullptr);
  EXPECT_GT(*best->microseconds, 0);
  EXPECT_EQ(MappingSpec::Parse(best->spec)->landmarks,
            MappingSpec::Parse(tuned.provenance.spec_text)->landmarks);
  EXPECT_EQ(best->standardize, tuned.provenance.standardize);
  EXPECT_THAT(tuned.certificate.warnings, ::testing::Contains(HasSubstr("by labels")));
  // As long as the time suffices, the same seed chooses the same.
  const BuiltVersion again = MustTrain(order, Ridge(HeadTask::kNumbers), rows, labels);
  EXPECT_EQ(again.provenance.kernel_text, tuned.provenance.kernel_text);
  EXPECT_EQ(Bits(DecodeHead(DecodeArtifact(again.bytes)->head)->weights),
            Bits(DecodeHead(DecodeArtifact(tuned.bytes)->head)->weights));
}

// Learners other than ridge keep the features of all rows in memory, so they are tried for few rows
// only.
TEST_F(FeaturesTest, TuningOfManyRowsKeepsTheLearnerWhoseMemoryDoesNotGrow) {
  FeaturesOrder order = OrderOf("f2(landmarks=1)", "rbf(gamma=scale)");
  order.tuning = TuningOptions{.budget = absl::Minutes(5), .max_landmarks = 20};
  for (const int64_t count : {kTuningRows, kTuningRows + 1}) {
    const Matrix<double> rows = UniformRows({.rows = count, .cols = 2});
    std::vector<std::string> labels;
    for (int64_t i = 0; i < count; ++i) labels.push_back(rows(i, 0) > rows(i, 1) ? "a" : "b");
    const TrainingReport report =
        ReportOf(MustTrain(order, Ridge(HeadTask::kClasses), rows, labels));
    const bool others = std::any_of(
        report.trials.begin(), report.trials.end(),
        [](const TuningTrial& trial) { return trial.learner.starts_with("linear_svm"); });
    EXPECT_EQ(others, count == kTuningRows);
  }
}

TEST_F(FeaturesTest, TuningIsStoppedByItsMonitor) {
  class Stopping final : public BuildMonitor {
   public:
    absl::Status Checkpoint(absl::string_view phase, double) override {
      return phase == "tune" && ++calls_ > 5 ? absl::CancelledError("stop") : absl::OkStatus();
    }

   private:
    int calls_ = 0;
  };
  const auto [rows, labels] = Friedman(900, 10, 5);
  FeaturesOrder order = OrderOf("f2(landmarks=1)", "rbf(gamma=scale)");
  order.tuning = TuningOptions{};
  Stopping monitor;
  EXPECT_EQ(Train(order, Ridge(HeadTask::kNumbers), rows, labels, monitor).status(),
            absl::CancelledError("stop"));
  EXPECT_EQ(space_.used_bytes(), 0);
}

}  // namespace
}  // namespace phimap::testing
