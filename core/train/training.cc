#include "core/train/training.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/certificate/artifact_review.h"
#include "core/certificate/certificate.h"
#include "core/digest/siphash.h"
#include "core/head/conformal.h"
#include "core/head/folding.h"
#include "core/head/head_program.h"
#include "core/head/head_variance.h"
#include "core/head/link.h"
#include "core/head/report.h"
#include "core/learn/label_index.h"
#include "core/learn/learned_scales.h"
#include "core/learn/learner.h"
#include "core/learn/learner_type.h"
#include "core/learn/margin.h"
#include "core/learn/ridge.h"
#include "core/learn/test_figures.h"
#include "core/linalg/matrix.h"
#include "core/mapping/build/build_cost.h"
#include "core/mapping/sample/stream_sample.h"
#include "core/plan/artifact.h"
#include "core/random/random_stream.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/utf8.h"
#include "core/status/words.h"
#include "core/train/training_rows.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// Rows that are mapped and learned from at a time, and the numbers that their inputs may take.
constexpr int64_t kBlockRows = 256;
constexpr int64_t kBlockNumbers = int64_t{1} << 20;
// Rows by which the task is told, if it is not given.
constexpr size_t kTellingRows = 4096;
// Rows that decide whether the head is folded.
constexpr int64_t kFoldingRows = 4000;
constexpr double kConfidence = 0.95;
constexpr size_t kNamesInNote = 3;
// Bytes of a group of which a row came with a part.
constexpr int64_t kGroupBytes = 40;
constexpr double kCandidatesOfC[] = {0.01, 0.1, 1, 10, 100, 1000};
// Shares of a training that builds its features at which it has chosen, built and read all rows
// again. One whose features are there begins at 0.
constexpr double kChosen = 0.4;
constexpr double kBuilt = 0.5;
constexpr double kLearned = 0.6;
constexpr std::array<double, 3> kCoverageConfidences = {0.8, 0.9, 0.95};

bool LooksLikeTargets(const LabelIndex& labels) {
  const std::optional<ErrorDetail> detail = DetailOf(labels.CheckClasses());
  return detail.has_value() && detail->reason == reason::kLabelsNotClasses;
}

absl::Status NothingToChooseBy(absl::string_view what, absl::string_view remedy) {
  return MakeError(
      Code::kInvalidArgument, reason::kRowsTooFew, "examples",
      absl::StrCat(what,
                   " chosen by rows of the part validate, and there are none; give some rows "
                   "this part, leave the part open for all rows, or ",
                   remedy));
}

// What the steps of Finish add up to.
struct Learned {
  ScoreWeights scores;
  // Value of the constant feature whose weight is the intercept; 0 without intercepts.
  double bias = 1;
  HeadVariance variance;
  std::optional<ParameterChoice> choice;
};

Separators SeparatorsOf(const Head& head, double bias) {
  Separators separators;
  for (int64_t k = 0; k < head.weights.cols(); ++k) {
    double sum = 0;
    for (int64_t i = 0; i < head.weights.rows(); ++i) {
      sum += head.weights(i, k) * head.weights(i, k);
    }
    separators.norms.push_back(std::sqrt(sum));
  }
  if (bias != 0) {
    separators.intercepts = head.intercepts;
    separators.intercept_scale = bias;
  }
  return separators;
}

}  // namespace

std::string TrainingSpec::ToText() const {
  return absl::StrCat("learner=", learner.ToText(), ", task=",
                      !task.has_value()             ? "told"
                      : *task == HeadTask::kClasses ? "classes"
                                                    : "numbers",
                      ", seed=", seed);
}

absl::Status CheckTrainsHeads(const TrainingSpec& spec) {
  const LearnerType& type = *spec.learner.type;
  const auto refuse = [&](absl::string_view what, bool LearnerType::*ability) {
    return MakeError(
        Code::kInvalidArgument, reason::kLearnerNotApplicable, "",
        absl::StrCat(type.name, " ", what, "; use ", absl::StrJoin(LearnersThat(ability), ", ")));
  };
  if (!type.makes_linear_head) {
    return refuse("has no weights that a version could serve", &LearnerType::makes_linear_head);
  }
  if (spec.task == HeadTask::kNumbers && !type.learns_numbers) {
    return refuse("learns classes and no numbers", &LearnerType::learns_numbers);
  }
  if (spec.task == HeadTask::kClasses && !type.learns_classes) {
    return refuse("learns numbers and no classes", &LearnerType::learns_classes);
  }
  return absl::OkStatus();
}

absl::Status FeaturesOrder::Validate() const {
  if (spec.remote.has_value()) {
    return MakeError(
        Code::kInvalidArgument, reason::kKernelNotApplicable, "kernel",
        absl::StrCat("a training builds features with kernels that phimap computes, got ",
                     spec.KernelText(), "; build a version first, and train on it"));
  }
  if (learn_scales) PHIMAP_RETURN_IF_ERROR(CheckLearnsScales(spec.kernel));
  if (!tuning.has_value()) return absl::OkStatus();
  const auto refuse = [](absl::string_view field, const auto& least, const auto& largest,
                         const auto& actual) {
    return MakeError(Code::kInvalidArgument, reason::kFieldOutOfRange, field,
                     absl::StrCat("expected ", least, " to ", largest, ", got ", actual));
  };
  if (tuning->budget < kLeastTuningBudget || tuning->budget > kLargestTuningBudget) {
    return refuse("budget", absl::FormatDuration(kLeastTuningBudget),
                  absl::FormatDuration(kLargestTuningBudget), absl::FormatDuration(tuning->budget));
  }
  if (tuning->max_landmarks < 1 || tuning->max_landmarks > kMaxLandmarks) {
    return refuse("max_landmarks", 1, kMaxLandmarks, tuning->max_landmarks);
  }
  return absl::OkStatus();
}

std::string FeaturesOrder::ToText() const {
  return absl::StrCat(tuning.has_value() ? absl::StrCat("tuning(", tuning->ToText(), "), ") : "",
                      learn_scales ? "learn_scales, " : "", spec.ToText());
}

class Training::Run {
 public:
  Run(const Engine* engine, const Residual* residual, std::optional<FeaturesOrder> features,
      SpoolSpace* space, TrainingSpec spec)
      : engine_(engine),
        residual_(residual),
        features_(std::move(features)),
        spec_(std::move(spec)),
        learner_(spec_.learner),
        task_(spec_.task),
        parts_options_(PartsOf(features_, spec_)),
        splitter_(parts_options_) {
    if (space != nullptr) spool_ = std::make_unique<RowSpool>(*space);
  }

  void UseThreads(int threads) { threads_ = threads; }
  int64_t rows() const { return rows_; }
  int64_t BytesWith(const TrainingBlock& block) const;
  absl::Status Add(const TrainingBlock& block, Checkpoint checkpoint);
  absl::StatusOr<BuiltVersion> Finish(absl::string_view bytes, BuildMonitor& monitor);

 private:
  int64_t LargestDimension(const ExamplesView& first) const;
  // A row whose task is not told yet.
  struct Waiting {
    std::string content;
    std::string label;
    std::string group;
    double weight;
    std::optional<Part> part;
  };

  // A larger part validates where more is chosen by it. It is learned from in the end.
  static PartsOptions PartsOf(const std::optional<FeaturesOrder>& features,
                              const TrainingSpec& spec) {
    PartsOptions options{.seed = spec.seed};
    if (features.has_value() && (features->tuning.has_value() || features->learn_scales)) {
      options.validate = 0.15;
    }
    return options;
  }

  int64_t RowsAtATime() const {
    return std::clamp<int64_t>(kBlockNumbers / std::max<int64_t>(1, columns_), 1, kBlockRows);
  }
  bool ChoosesAlpha() const { return one_pass() && !learner_.values.Word("alpha").empty(); }
  // Whether rows of the part validate choose something. Otherwise they are only learned from.
  bool ChoosesAnything() const {
    return ChoosesAlpha() || ChoosesC(learner_) ||
           (features_.has_value() && (features_->learn_scales || features_->tuning.has_value()));
  }
  // Whether tuning of so many rows may choose a learner that needs all of them in memory.
  bool MayLeaveRidge(int64_t rows) const {
    return features_.has_value() && features_->tuning.has_value() &&
           !features_->tuning->keep_learner && rows <= kTuningRows;
  }
  bool one_pass() const { return !learner_.type->needs_all_rows(); }
  absl::Status CheckTakes(const ExamplesView& rows) const;
  absl::Status CheckStream(const ExamplesView& first) const;
  absl::Status Begin(const ExamplesView& first);
  absl::Status TellTask();
  absl::StatusOr<double> ReadLabel(absl::string_view label, int64_t row);
  absl::Status AddRow(PartSplitter::Row row, absl::string_view label, int64_t number);
  // Learns from a row, now or with the next rows.
  absl::Status Learn(PartRow row);
  absl::Status LearnBlock();
  template <typename T>
  absl::Status LearnFeatures(RidgeTraining::Part part, absl::Span<const PartRow> rows);
  absl::Status LearnFrom(RidgeTraining::Part part, absl::Span<const PartRow> rows);
  template <typename T>
  absl::StatusOr<Matrix<T>> Map(const ExamplesView& examples);
  template <typename T>
  absl::StatusOr<Matrix<double>> MapWide(const ExamplesView& examples);
  absl::StatusOr<Matrix<double>> FeaturesOf(const ExamplesView& examples);

  // Builds the features from the spooled rows, and learns from them.
  absl::StatusOr<std::string> BuildFeatures(Parts& parts, BuildMonitor& monitor);
  absl::Status ChooseFeatures(Parts& parts, BuildMonitor& monitor);
  absl::StatusOr<std::string> WithNotes(absl::string_view bytes) const;

  absl::StatusOr<Learned> Solve(Parts& parts, phimap::Checkpoint checkpoint);
  absl::StatusOr<Learned> SolveRidge(Parts& parts, phimap::Checkpoint checkpoint);
  absl::StatusOr<Learned> SolveKept(phimap::Checkpoint checkpoint);
  absl::StatusOr<ParameterChoice> ChooseC(ConstMatrixView<double> all,
                                          phimap::Checkpoint checkpoint);
  void AddNotes(const Head& head, TrainingReport& report) const;
  absl::Status Fold(Plan plan, Parts& parts, Head& head, TrainingReport& report);
  absl::StatusOr<Matrix<double>> ScoresOf(const HeadProgram& program,
                                          absl::Span<const PartRow> rows);
  absl::Status Calibrate(const HeadProgram& program, Parts& parts, Head& head);
  absl::Status Report(const HeadProgram& program, Parts& parts, double bias, const Head& head,
                      TrainingReport& report, phimap::Checkpoint checkpoint);
  absl::Status ReportClasses(const Matrix<double>& scores, absl::Span<const PartRow> test,
                             double bias, const Head& head, TrainingReport& report);
  absl::Status ReportNumbers(const Matrix<double>& scores, absl::Span<const PartRow> test,
                             const Head& head, TrainingReport& report);
  absl::StatusOr<std::vector<double>> DeviationsOf(absl::Span<const PartRow> rows,
                                                   const HeadVariance& variance);
  absl::StatusOr<std::optional<double>> RawError(absl::Span<const PartRow> test,
                                                 phimap::Checkpoint checkpoint);
  double TrivialError(absl::Span<const PartRow> test) const;

  ContentRows Again(absl::Span<const PartRow> rows) const { return {rows, kind_, columns_}; }

  // Null until the features are built, if they are.
  const Engine* engine_;
  const Residual* residual_;
  std::unique_ptr<const Engine> built_engine_;
  std::optional<Residual> built_residual_;
  std::optional<FeaturesOrder> features_;
  std::unique_ptr<RowSpool> spool_;
  std::vector<TuningTrial> trials_;

  const TrainingSpec spec_;
  // That of the spec, or the one that tuning chose.
  LearnerSpec learner_;
  std::optional<HeadTask> task_;
  const PartsOptions parts_options_;
  int64_t rows_ = 0;
  int threads_ = 1;

  // What the first block fixes for all others.
  bool begun_ = false;
  ExampleKind kind_ = ExampleKind::kDense;
  int64_t columns_ = 0;
  bool weighted_ = false;

  std::vector<Waiting> waiting_;
  ClassNames names_;
  // Place of each class among the sorted names, by the number that it got when it first came; empty
  // until Finish.
  std::vector<int32_t> places_;
  PartSplitter splitter_;
  std::unique_ptr<RawSample> raw_;
  // Numbers of rows of each class among those that are trained on, or the sum of their targets.
  std::vector<int64_t> class_rows_;
  double target_sum_ = 0;
  int64_t trained_ = 0;

  // Rows that are learned from when there are enough.
  std::vector<PartRow> block_;
  std::unique_ptr<RidgeTraining> ridge_;
  // For learners that need all rows at once.
  std::vector<Matrix<double>> kept_;
  std::vector<int32_t> kept_labels_;
  std::vector<double> kept_targets_;
  std::vector<double> kept_weights_;
  // The last of them are those of the part validate.
  int64_t kept_validate_ = 0;
  std::vector<PartRow> evicted_;
  // The part with which a row of each group came, by the hash of the group's name.
  absl::flat_hash_map<uint64_t, Part> part_of_group_;
  EngineScratch scratch_;
};

int64_t Training::Run::BytesWith(const TrainingBlock& block) const {
  const int64_t columns = begun_ ? columns_ : block.rows.columns();
  if (features_.has_value() && !CheckStream(block.rows).ok()) return 0;  // Add refuses the block
  const auto d = static_cast<double>(LargestDimension(block.rows));
  const auto n = static_cast<double>(rows_ + block.rows.rows());
  const double classes = std::max<double>(names_.count(), 2) +
                         static_cast<double>(std::min<int64_t>(block.rows.rows(), 64));
  const int64_t row_bytes =
      block.rows.bytes() / std::max<int64_t>(1, block.rows.rows()) + kRowOverhead;
  double bytes = static_cast<double>(
      std::min<int64_t>(2 * parts_options_.max_bytes, (rows_ + block.rows.rows()) * row_bytes));
  bytes += static_cast<double>(RawSample(columns, 0).bytes(columns));
  if (!block.groups.empty() && !block.parts.empty()) {
    bytes += static_cast<double>((std::ssize(part_of_group_) + block.rows.rows()) * kGroupBytes);
  }
  const LearnerType& type = *learner_.type;
  double learning =
      type.training_bytes(learner_.values, {.rows = one_pass() ? 0 : n,
                                            .columns = d,
                                            .features = 0,
                                            .classes = task_ == HeadTask::kNumbers ? 0 : classes});
  if (!one_pass() || MayLeaveRidge(rows_ + block.rows.rows())) learning += 2 * 8 * n * (d + 2);
  // The artifact, its plan, the folded plan, and the held rows that are mapped at the end.
  const double artifact =
      engine_ != nullptr ? static_cast<double>(engine_->memory_bytes()) : 8 * d * (d + 2);
  learning += 4 * artifact;
  learning +=
      8 * d * static_cast<double>(std::min<int64_t>(rows_ + block.rows.rows(), kFoldingRows));
  if (!features_.has_value()) return static_cast<int64_t>(std::min(bytes + learning, 9e18));
  // The features are built before anything is learned.
  double building = features_->tuning.has_value()
                        ? TuningBytes(*features_->tuning, columns, classes)
                        : static_cast<double>(ReservedBytes(features_->spec, block.rows.kind(),
                                                            SampleColumns(block.rows), 1));
  if (features_->tuning.has_value()) building += 4 * 8 * d * d;
  return static_cast<int64_t>(std::min(bytes + std::max(building, learning), 9e18));
}

// An upper bound of the number of features.
int64_t Training::Run::LargestDimension(const ExamplesView& first) const {
  if (engine_ != nullptr) return engine_->output_columns();
  if (features_->tuning.has_value()) return features_->tuning->max_landmarks;
  return CostOfBuild(features_->spec, rows_ + first.rows(), SampleColumns(first)).output_columns;
}

// Whether features can be built from a stream that begins with these rows.
absl::Status Training::Run::CheckStream(const ExamplesView& first) const {
  if (engine_ != nullptr) return absl::OkStatus();
  if ((features_->tuning.has_value() || features_->learn_scales) &&
      (IsString(first.kind()) || first.columns() > kRawColumns)) {
    return MakeError(
        Code::kInvalidArgument, reason::kColumnsMismatch, "examples.examples",
        absl::StrCat("kernels are tuned and scales learned for rows of at most ", kRawColumns,
                     " numbers, got ",
                     IsString(first.kind()) ? "strings" : absl::StrCat(first.columns(), " columns"),
                     "; give a spec and a kernel"),
        {{"limit", absl::StrCat(kRawColumns)}});
  }
  if (features_->tuning.has_value()) return absl::OkStatus();
  return WithFieldPrefix(features_->spec.CheckExamples(first.kind(), SampleColumns(first)),
                         "spec.build.");
}

absl::Status Training::Run::Begin(const ExamplesView& first) {
  PHIMAP_RETURN_IF_ERROR(CheckStream(first));
  begun_ = true;
  kind_ = first.kind();
  columns_ = first.columns();
  raw_ = std::make_unique<RawSample>(engine_ != nullptr && engine_->is_remote() ? 0 : columns_,
                                     spec_.seed);
  return absl::OkStatus();
}

absl::Status Training::Run::CheckTakes(const ExamplesView& rows) const {
  return engine_ != nullptr ? engine_->CheckTakes(rows) : absl::OkStatus();
}

absl::Status Training::Run::Add(const TrainingBlock& block, Checkpoint checkpoint) {
  const std::string field = absl::StrCat("examples.examples.", block.rows.kind_name(), ".");
  PHIMAP_RETURN_IF_ERROR(WithFieldPrefix(CheckTakes(block.rows), "examples."));
  PHIMAP_RETURN_IF_ERROR(WithFieldPrefix(CheckExamples(block.rows), field));
  if (!begun_) PHIMAP_RETURN_IF_ERROR(Begin(block.rows));
  const bool same = IsString(kind_) ? block.rows.kind() == kind_ : !IsString(block.rows.kind());
  if (!same || block.rows.columns() != columns_) {
    return MakeError(Code::kInvalidArgument, reason::kColumnsMismatch, field + "columns",
                     absl::StrCat("expected ", columns_, " columns as in the first block, got ",
                                  block.rows.columns()));
  }
  if (!block.weights.empty() && !learner_.type->takes_row_weights) {
    return MakeError(
        Code::kInvalidArgument, reason::kLearnerNotApplicable, "examples.weights",
        absl::StrCat(learner_.type->name, " takes no weights of rows; use ",
                     absl::StrJoin(LearnersThat(&LearnerType::takes_row_weights), ", ")));
  }
  weighted_ |= !block.weights.empty();
  std::string content;
  for (int64_t i = 0; i < block.rows.rows(); ++i) {
    if (i % kBlockRows == 0) PHIMAP_RETURN_IF_ERROR(checkpoint());
    const double weight = block.weights.empty() ? 1 : block.weights[i];
    if (!(weight > 0 && std::isfinite(weight))) {
      return MakeError(Code::kInvalidArgument, reason::kFieldOutOfRange,
                       absl::StrCat("examples.weights[", i, "]"),
                       absl::StrCat("expected a number over 0, got ", weight),
                       {{"row", absl::StrCat(i)}});
    }
    PHIMAP_RETURN_IF_ERROR(WithFieldPrefix(CheckLabel(block.labels[i], rows_), "examples."));
    RowContent(block.rows, i, content);
    const absl::string_view group = block.groups.empty() ? "" : block.groups[i];
    const std::optional<Part> part = block.parts.empty() ? std::nullopt : block.parts[i];
    if (!group.empty() && part.has_value()) {
      const Part of_group = part_of_group_.emplace(SipHash({}, group), *part).first->second;
      if (of_group != *part) {
        return MakeError(Code::kInvalidArgument, reason::kFieldsContradictory,
                         absl::StrCat("examples.parts[", i, "]"),
                         absl::StrCat("the row is to be in the part ", PartName(*part),
                                      ", and an earlier row of its group ", Quoted(group), " in ",
                                      PartName(of_group), "; rows of a group share a part"),
                         {{"row", absl::StrCat(i)}});
      }
    }
    if (!task_.has_value()) {
      waiting_.push_back({content, std::string(block.labels[i]), std::string(group), weight, part});
      ++rows_;
      if (waiting_.size() == kTellingRows) PHIMAP_RETURN_IF_ERROR(TellTask());
      continue;
    }
    PHIMAP_RETURN_IF_ERROR(
        AddRow({.content = content, .group = group, .weight = weight, .part = part},
               block.labels[i], rows_));
    ++rows_;
  }
  return absl::OkStatus();
}

// Tells by the labels of the rows that wait whether they are classes or numbers, and adds the rows.
absl::Status Training::Run::TellTask() {
  bool numbers = true;
  bool integers = true;
  LabelIndex index;
  bool many = false;
  for (const Waiting& row : waiting_) {
    numbers &= NumberIn(row.label).has_value();
    integers &= IsInteger(row.label);
    if (!many && !index.Add(row.label).ok()) many = true;
  }
  const bool regression = numbers && (many || LooksLikeTargets(index));
  const LearnerType& type = *learner_.type;
  if (regression && !type.learns_numbers) {
    return MakeError(Code::kInvalidArgument, reason::kLabelsNotClasses, "examples.labels",
                     absl::StrCat("the labels of the first ", waiting_.size(),
                                  " rows look like the target of a regression, and ", type.name,
                                  " learns classes; use ",
                                  absl::StrJoin(LearnersThat(&LearnerType::learns_numbers), " or "),
                                  ", or say that the task is classes"));
  }
  if (!numbers && !type.learns_classes) {
    return MakeError(
        Code::kInvalidArgument, reason::kLabelInvalid, "examples.labels",
        absl::StrCat("the labels are names, and ", type.name, " learns numbers; use ",
                     absl::StrJoin(LearnersThat(&LearnerType::learns_classes), " or ")));
  }
  if (!type.learns_numbers) {
    task_ = HeadTask::kClasses;
  } else if (!type.learns_classes || regression) {
    task_ = HeadTask::kNumbers;
  } else if (!numbers || integers) {
    task_ = HeadTask::kClasses;
  } else {
    return MakeError(
        Code::kInvalidArgument, reason::kTaskUnclear, "spec.task",
        absl::StrCat("the labels of the first ", waiting_.size(), " rows are numbers, but only ",
                     index.class_count(),
                     " different ones, not all of them written as integers; say whether they are "
                     "classes or numbers (task)"));
  }
  const int64_t before = rows_ - std::ssize(waiting_);
  const std::vector<Waiting> rows = std::exchange(waiting_, {});
  for (size_t i = 0; i < rows.size(); ++i) {
    const Waiting& row = rows[i];
    PHIMAP_RETURN_IF_ERROR(
        AddRow({.content = row.content, .group = row.group, .weight = row.weight, .part = row.part},
               row.label, before + static_cast<int64_t>(i)));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> Training::Run::ReadLabel(absl::string_view label, int64_t row) {
  if (*task_ == HeadTask::kClasses) return names_.NumberOf(label, row);
  const std::optional<double> number = NumberIn(label);
  if (number.has_value()) return *number;
  return InvalidLabel(label, row,
                      spec_.task.has_value() || !learner_.type->learns_classes
                          ? "a finite number"
                          : "a finite number, as the labels of the first rows are targets; say "
                            "that the task is classes if they are names");
}

absl::Status Training::Run::AddRow(PartSplitter::Row row, absl::string_view label, int64_t number) {
  PHIMAP_ASSIGN_OR_RETURN(row.label, ReadLabel(label, number));
  if (splitter_.Add(row, evicted_)) {
    PHIMAP_RETURN_IF_ERROR(Learn({std::string(row.content), row.label, row.weight}));
  }
  for (PartRow& evicted : evicted_) PHIMAP_RETURN_IF_ERROR(Learn(std::move(evicted)));
  evicted_.clear();
  return absl::OkStatus();
}

absl::Status Training::Run::Learn(PartRow row) {
  raw_->Add(row);
  ++trained_;
  if (*task_ == HeadTask::kNumbers) {
    target_sum_ += row.label;
  } else {
    class_rows_.resize(std::max(class_rows_.size(), static_cast<size_t>(row.label) + 1));
    ++class_rows_[static_cast<size_t>(row.label)];
  }
  block_.push_back(std::move(row));
  return std::ssize(block_) < RowsAtATime() ? absl::OkStatus() : LearnBlock();
}

absl::Status Training::Run::LearnBlock() {
  if (engine_ == nullptr) {
    for (const PartRow& row : block_) PHIMAP_RETURN_IF_ERROR(spool_->Add(row));
    block_.clear();
    return absl::OkStatus();
  }
  const absl::Status learned = LearnFrom(RidgeTraining::Part::kTrain, block_);
  block_.clear();
  return learned;
}

absl::Status Training::Run::LearnFrom(RidgeTraining::Part part, absl::Span<const PartRow> rows) {
  if (rows.empty()) return absl::OkStatus();
  return engine_->serving_type() == FloatType::kFloat32 ? LearnFeatures<float>(part, rows)
                                                        : LearnFeatures<double>(part, rows);
}

template <typename T>
absl::StatusOr<Matrix<T>> Training::Run::Map(const ExamplesView& examples) {
  Matrix<T> features = Matrix<T>::Uninit(examples.rows(), engine_->output_columns());
  TransformPart part{examples, features.data(), absl::OkStatus()};
  engine_->Transform(absl::MakeSpan(&part, 1), scratch_);
  if (!part.status.ok()) {
    // Rows that were held come later, so that only the row's content could name it.
    return MakeError(part.status.code(), reason::kValueNotRepresentable, "examples",
                     absl::StrCat("a row of the stream: ", WithoutField(part.status)));
  }
  return features;
}

template <typename T>
absl::StatusOr<Matrix<double>> Training::Run::MapWide(const ExamplesView& examples) {
  PHIMAP_ASSIGN_OR_RETURN(const Matrix<T> features, Map<T>(examples));
  Matrix<double> wide = Matrix<double>::Uninit(features.rows(), features.cols());
  std::copy_n(features.data(), features.size(), wide.data());
  return wide;
}

absl::StatusOr<Matrix<double>> Training::Run::FeaturesOf(const ExamplesView& examples) {
  return engine_->serving_type() == FloatType::kFloat32 ? MapWide<float>(examples)
                                                        : Map<double>(examples);
}

template <typename T>
absl::Status Training::Run::LearnFeatures(RidgeTraining::Part part,
                                          absl::Span<const PartRow> rows) {
  const ContentRows again = Again(rows);
  const KnownRows known(rows, *task_, weighted_);
  if (one_pass()) {
    if (ridge_ == nullptr) {
      ridge_ = learner_.type->begin_one_pass(learner_.values, *task_, engine_->output_columns(),
                                             RidgeTraining::kUnlimited);
    }
    PHIMAP_ASSIGN_OR_RETURN(const Matrix<T> features, Map<T>(again.examples()));
    const auto threads = [this] { return threads_; };
    return ridge_->Add<T>(part, features.view(), known.view(), TileControl(threads, NeverStop));
  }
  PHIMAP_ASSIGN_OR_RETURN(Matrix<double> features, FeaturesOf(again.examples()));
  kept_.push_back(std::move(features));
  kept_labels_.insert(kept_labels_.end(), known.labels.begin(), known.labels.end());
  kept_targets_.insert(kept_targets_.end(), known.targets.begin(), known.targets.end());
  kept_weights_.insert(kept_weights_.end(), known.weights.begin(), known.weights.end());
  return absl::OkStatus();
}

absl::StatusOr<Learned> Training::Run::SolveRidge(Parts& parts, phimap::Checkpoint checkpoint) {
  if (parts[Part::kValidate].empty() && ChoosesAlpha()) {
    return NothingToChooseBy("alpha=auto is", "give alpha as a number");
  }
  PHIMAP_RETURN_IF_ERROR(LearnFrom(RidgeTraining::Part::kValidate, parts[Part::kValidate]));
  const bool numbers = *task_ == HeadTask::kNumbers;
  PHIMAP_ASSIGN_OR_RETURN(RidgeFit fit, ridge_->Solve({.class_count = numbers ? 0 : names_.count(),
                                                       .class_numbers = places_,
                                                       .variance = numbers && residual_ != nullptr},
                                                      checkpoint));
  Learned learned{.scores = std::move(fit.scores), .variance = std::move(fit.variance)};
  if (!fit.trials.empty()) {
    ParameterChoice choice{
        .parameter = "alpha", .loss = "mean squared error of the targets", .chosen = fit.alpha};
    for (const RidgeFit::Trial& trial : fit.trials) {
      choice.candidates.push_back({trial.alpha, trial.error});
    }
    learned.choice = std::move(choice);
  }
  return learned;
}

// For learners that need all rows: those that choose, if anything is chosen, are learned from too.
absl::StatusOr<Learned> Training::Run::SolveKept(phimap::Checkpoint checkpoint) {
  int64_t rows = 0;
  for (const Matrix<double>& part : kept_) rows += part.rows();
  Matrix<double> all = Matrix<double>::Uninit(rows, engine_->output_columns());
  int64_t next = 0;
  for (Matrix<double>& part : kept_) {
    std::copy_n(part.data(), part.size(), all.row(next));
    next += part.rows();
    part = Matrix<double>();
  }
  for (int32_t& label : kept_labels_) label = places_[label];
  std::optional<ParameterChoice> choice;
  if (ChoosesC(learner_)) {
    PHIMAP_ASSIGN_OR_RETURN(choice, ChooseC(std::as_const(all).view(),
                                            [&](double share) { return checkpoint(0.8 * share); }));
    learner_.values.Resolve("auto", choice->chosen);
  }
  const TrainingSet set{.rows = std::as_const(all).view(),
                        .labels = kept_labels_,
                        .class_count = *task_ == HeadTask::kClasses ? names_.count() : 0,
                        .targets = kept_targets_,
                        .weights = kept_weights_};
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Learner> learner, MakeLearner(learner_));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Model> model,
                          learner->Train(set, spec_.seed, checkpoint));
  return Learned{.scores = ToScores(*model->linear()),
                 .bias = model->linear()->bias,
                 .variance = {},
                 .choice = std::move(choice)};
}

// Tries every C on the rows of the part train, which come before those of validate.
absl::StatusOr<ParameterChoice> Training::Run::ChooseC(ConstMatrixView<double> all,
                                                       phimap::Checkpoint checkpoint) {
  const int64_t trained = all.rows() - kept_validate_;
  if (kept_validate_ == 0 || trained == 0) {
    return NothingToChooseBy("C=auto is", "give C as a number");
  }
  const auto first = [trained](const auto& values) {
    return absl::MakeConstSpan(values).first(std::min(values.size(), static_cast<size_t>(trained)));
  };
  const bool classes = *task_ == HeadTask::kClasses;
  const TrainingSet set{.rows = all.Rows(0, trained),
                        .labels = first(kept_labels_),
                        .class_count = classes ? names_.count() : 0,
                        .targets = first(kept_targets_),
                        .weights = first(kept_weights_)};
  ParameterChoice choice{.parameter = "C",
                         .loss = classes ? "share of errors" : "mean squared error",
                         .chosen = 0,
                         .candidates = {}};
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < std::size(kCandidatesOfC); ++i) {
    LearnerSpec spec = learner_;
    spec.values.Resolve("auto", kCandidatesOfC[i]);
    PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Learner> learner, MakeLearner(spec));
    const auto part = [&](double share) {
      return checkpoint((static_cast<double>(i) + share) / std::size(kCandidatesOfC));
    };
    PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Model> model,
                            learner->Train(set, spec_.seed, part));
    Matrix<double> scores = Matrix<double>::Uninit(kept_validate_, model->score_count());
    PHIMAP_RETURN_IF_ERROR(model->Scores(all.Rows(trained, kept_validate_), scores.view(), part));
    double sum = 0;
    for (int64_t row = 0; row < kept_validate_; ++row) {
      if (classes) {
        const int64_t answer =
            std::max_element(scores.row(row), scores.row(row) + scores.cols()) - scores.row(row);
        sum += answer != kept_labels_[trained + row] ? 1 : 0;
      } else {
        const double error = scores(row, 0) - kept_targets_[trained + row];
        sum += error * error;
      }
    }
    const double loss = sum / static_cast<double>(kept_validate_);
    choice.candidates.push_back({kCandidatesOfC[i], loss});
    if (!(loss < least)) continue;
    least = loss;
    choice.chosen = kCandidatesOfC[i];
  }
  return choice;
}

absl::StatusOr<Learned> Training::Run::Solve(Parts& parts, phimap::Checkpoint checkpoint) {
  return one_pass() ? SolveRidge(parts, checkpoint) : SolveKept(checkpoint);
}

absl::Status Training::Run::Fold(Plan plan, Parts& parts, Head& head, TrainingReport& report) {
  std::vector<PartRow> rows;
  for (const Part part : {Part::kValidate, Part::kCalibrateLink}) {
    for (const PartRow& row : parts[part]) {
      if (std::ssize(rows) < kFoldingRows) rows.push_back(row);
    }
  }
  if (rows.empty()) return absl::OkStatus();
  const ContentRows again = Again(rows);
  const std::shared_ptr<const Engine> features(std::shared_ptr<const Engine>(), engine_);
  PHIMAP_ASSIGN_OR_RETURN(const FoldingMeasurement measured,
                          MeasureFolding(std::move(plan), features, head, again.examples()));
  head.folded = measured.Folds();
  report.folding = {.rows = measured.rows,
                    .largest_difference = measured.largest_difference,
                    .largest_bound = measured.largest_bound,
                    .changed = measured.changed};
  return absl::OkStatus();
}

absl::StatusOr<Matrix<double>> Training::Run::ScoresOf(const HeadProgram& program,
                                                       absl::Span<const PartRow> rows) {
  Matrix<double> scores = Matrix<double>::Uninit(std::ssize(rows), program.scores());
  for (int64_t first = 0; first < scores.rows(); first += kBlockRows) {
    const int64_t count = std::min(kBlockRows, scores.rows() - first);
    const ContentRows again = Again(rows.subspan(first, count));
    ScorePart part{again.examples(), scores.row(first), absl::OkStatus()};
    program.Scores(absl::MakeSpan(&part, 1), scratch_);
    PHIMAP_RETURN_IF_ERROR(part.status);
  }
  return scores;
}

absl::Status Training::Run::Calibrate(const HeadProgram& program, Parts& parts, Head& head) {
  const bool classes = head.task == HeadTask::kClasses;
  if (classes && !parts[Part::kCalibrateLink].empty()) {
    PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> scores,
                            ScoresOf(program, parts[Part::kCalibrateLink]));
    const KnownRows known(parts[Part::kCalibrateLink], head.task, false);
    head.link = FitLink(scores.view(), known.labels, names_.count());
  }
  if (parts[Part::kCalibrateSets].empty() || (classes && head.link.kind == Link::Kind::kNone)) {
    return absl::OkStatus();
  }
  const std::vector<PartRow>& rows = parts[Part::kCalibrateSets];
  PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> scores, ScoresOf(program, rows));
  std::vector<std::pair<double, int32_t>> nonconformity;
  std::vector<double> probabilities(static_cast<size_t>(names_.count()));
  for (int64_t i = 0; i < scores.rows(); ++i) {
    if (!classes) {
      nonconformity.emplace_back(std::abs(rows[i].label - scores(i, 0)), 0);
      continue;
    }
    const auto label = static_cast<int32_t>(rows[i].label);
    Probabilities(head.link, {scores.row(i), static_cast<size_t>(scores.cols())},
                  absl::MakeSpan(probabilities));
    nonconformity.emplace_back(1 - probabilities[label], label);
  }
  std::sort(nonconformity.begin(), nonconformity.end());
  for (const auto& [score, label] : nonconformity) {
    head.calibration.scores.push_back(score);
    if (classes) head.calibration.classes.push_back(label);
  }
  return absl::OkStatus();
}

absl::Status Training::Run::ReportClasses(const Matrix<double>& scores,
                                          absl::Span<const PartRow> test, double bias,
                                          const Head& head, TrainingReport& report) {
  const KnownRows known(test, head.task, false);
  const Separators separators = SeparatorsOf(head, bias);
  Matrix<double> probabilities;
  if (head.link.kind != Link::Kind::kNone) {
    probabilities = Matrix<double>::Uninit(scores.rows(), names_.count());
    for (int64_t i = 0; i < scores.rows(); ++i) {
      Probabilities(head.link, {scores.row(i), static_cast<size_t>(scores.cols())},
                    {probabilities.row(i), static_cast<size_t>(probabilities.cols())});
    }
  }
  std::vector<double> squared_lengths;
  for (int64_t first = 0; first < std::ssize(test); first += kBlockRows) {
    const ContentRows again =
        Again(test.subspan(first, std::min<int64_t>(kBlockRows, std::ssize(test) - first)));
    PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> features, FeaturesOf(again.examples()));
    for (int64_t i = 0; i < features.rows(); ++i) {
      squared_lengths.push_back(std::inner_product(
          features.row(i), features.row(i) + features.cols(), features.row(i), 0.0));
    }
  }
  report.classes = MeasureClasses({.scores = scores.view(),
                                   .probabilities = std::as_const(probabilities).view(),
                                   .labels = known.labels,
                                   .class_count = names_.count(),
                                   .separators = &separators,
                                   .squared_lengths = squared_lengths,
                                   .self_kernel = {},
                                   .rounding = {}},
                                  report.confidence);
  if (head.calibration.scores.empty()) return absl::OkStatus();
  const ConformalPredictor predictor(head.calibration, names_.count());
  report.coverage = MeasureSets(std::as_const(probabilities).view(), known.labels, predictor,
                                kCoverageConfidences, report.confidence);
  report.class_conditional = predictor.class_conditional();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> Training::Run::DeviationsOf(absl::Span<const PartRow> rows,
                                                                const HeadVariance& variance) {
  const VarianceFunction function(variance);
  std::vector<double> deviations(rows.size());
  for (size_t first = 0; first < rows.size(); first += kBlockRows) {
    const size_t count = std::min<size_t>(kBlockRows, rows.size() - first);
    const ContentRows again = Again(rows.subspan(first, count));
    std::vector<double> residuals(count);
    const absl::Span<double> out = absl::MakeSpan(deviations).subspan(first, count);
    const auto compute = [&]<typename T>(const Matrix<T>& features) {
      residual_->Compute(again.examples(), features.data(), residuals.data(), nullptr);
      function.Compute<T>(features.view(), residuals, out);
    };
    if (engine_->serving_type() == FloatType::kFloat32) {
      PHIMAP_ASSIGN_OR_RETURN(const Matrix<float> features, Map<float>(again.examples()));
      compute(features);
    } else {
      PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> features, Map<double>(again.examples()));
      compute(features);
    }
    for (double& value : out) value = std::sqrt(value + function.observation_variance());
  }
  return deviations;
}

absl::Status Training::Run::ReportNumbers(const Matrix<double>& scores,
                                          absl::Span<const PartRow> test, const Head& head,
                                          TrainingReport& report) {
  const KnownRows known(test, head.task, false);
  const absl::Span<const double> predicted(scores.data(), test.size());
  std::vector<double> deviations;
  if (!head.variance.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(deviations, DeviationsOf(test, head.variance));
    // A head that is certain of a row, as where all targets are equal, has no standardised error.
    if (std::any_of(deviations.begin(), deviations.end(), [](double d) { return !(d > 0); })) {
      deviations.clear();
    }
  }
  report.numbers =
      MeasureNumbers({.predicted = predicted, .targets = known.targets, .deviations = deviations},
                     report.confidence);
  if (head.calibration.scores.empty()) return absl::OkStatus();
  report.coverage =
      MeasureIntervals(predicted, known.targets, ConformalPredictor(head.calibration, 0),
                       kCoverageConfidences, report.confidence);
  return absl::OkStatus();
}

// The error of the most frequent class, or of the mean, of the rows that were trained on.
double Training::Run::TrivialError(absl::Span<const PartRow> test) const {
  double sum = 0;
  if (*task_ == HeadTask::kNumbers) {
    const double mean = target_sum_ / static_cast<double>(trained_);
    for (const PartRow& row : test) sum += (row.label - mean) * (row.label - mean);
    return std::sqrt(sum / static_cast<double>(test.size()));
  }
  const auto most = std::max_element(class_rows_.begin(), class_rows_.end());
  const int32_t answer = places_[static_cast<size_t>(most - class_rows_.begin())];
  for (const PartRow& row : test) sum += static_cast<int32_t>(row.label) != answer ? 1 : 0;
  return sum / static_cast<double>(test.size());
}

// The error of the same learner on the raw standardised columns; nullopt if they are no numbers,
// too many, or the learner cannot learn from them.
absl::StatusOr<std::optional<double>> Training::Run::RawError(absl::Span<const PartRow> test,
                                                              phimap::Checkpoint checkpoint) {
  std::vector<PartRow>& sample = raw_->rows();
  if (sample.empty()) return std::nullopt;
  const ContentRows again = Again(sample);
  const Standardizer standardizer(again.numbers());
  const Matrix<double> rows = standardizer.Of(again.numbers());
  KnownRows known(sample, *task_, weighted_);
  for (int32_t& label : known.labels) label = places_[label];
  const TrainingSet set{.rows = rows.view(),
                        .labels = known.labels,
                        .class_count = *task_ == HeadTask::kClasses ? names_.count() : 0,
                        .targets = known.targets,
                        .weights = known.weights};
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Learner> learner, MakeLearner(learner_));
  const absl::StatusOr<std::unique_ptr<const Model>> model =
      learner->Train(set, spec_.seed, checkpoint);
  // The build was cancelled, or these columns do not suit the learner.
  if (!model.ok()) PHIMAP_RETURN_IF_ERROR(checkpoint(1));
  if (!model.ok()) return std::nullopt;
  const ContentRows tested = Again(test);
  const Matrix<double> tested_rows = standardizer.Of(tested.numbers());
  Matrix<double> scores = Matrix<double>::Uninit(tested_rows.rows(), (*model)->score_count());
  PHIMAP_RETURN_IF_ERROR((*model)->Scores(tested_rows.view(), scores.view(), checkpoint));
  double sum = 0;
  for (int64_t i = 0; i < scores.rows(); ++i) {
    if (*task_ == HeadTask::kNumbers) {
      sum += (scores(i, 0) - test[i].label) * (scores(i, 0) - test[i].label);
      continue;
    }
    const int64_t answer =
        std::max_element(scores.row(i), scores.row(i) + scores.cols()) - scores.row(i);
    sum += answer != static_cast<int64_t>(test[i].label) ? 1 : 0;
  }
  sum /= static_cast<double>(scores.rows());
  return *task_ == HeadTask::kNumbers ? std::sqrt(sum) : sum;
}

// What the figures alone do not show.
void Training::Run::AddNotes(const Head& head, TrainingReport& report) const {
  if (report.choice.has_value() && report.choice->candidates.size() > 1) {
    const auto [least, most] =
        std::minmax_element(report.choice->candidates.begin(), report.choice->candidates.end(),
                            [](const auto& a, const auto& b) { return a.value < b.value; });
    const bool is_least = report.choice->chosen == least->value;
    if (is_least || report.choice->chosen == most->value) {
      report.notes.push_back(absl::StrCat(report.choice->parameter, " = ", report.choice->chosen,
                                          " is the ", is_least ? "smallest" : "largest",
                                          " that was tried; ", is_least ? "smaller" : "larger",
                                          " ones may do better, and can be given"));
    }
  }
  if (head.task != HeadTask::kClasses) return;
  std::vector<int64_t> trained(head.classes.size());
  for (size_t y = 0; y < class_rows_.size(); ++y) trained[places_[y]] += class_rows_[y];
  std::vector<std::string> untrained, untested;
  for (size_t k = 0; k < head.classes.size(); ++k) {
    if (trained[k] == 0) untrained.push_back(Quoted(head.classes[k]));
    if (report.classes->classes[k].rows == 0) untested.push_back(Quoted(head.classes[k]));
  }
  const auto named = [](std::vector<std::string> names) {
    const size_t more = names.size() > kNamesInNote ? names.size() - kNamesInNote : 0;
    names.resize(names.size() - more);
    return absl::StrCat(absl::StrJoin(names, ", "),
                        more > 0 ? absl::StrCat(" and ", more, " more") : "");
  };
  if (!untrained.empty()) {
    report.notes.push_back(absl::StrCat("no row is ever called ", named(untrained),
                                        ": none of its rows was trained on"));
  }
  if (!untested.empty()) {
    report.notes.push_back(absl::StrCat("no test row is of the class ", named(untested),
                                        ", so its recall is not known"));
  }
}

absl::Status Training::Run::Report(const HeadProgram& program, Parts& parts, double bias,
                                   const Head& head, TrainingReport& report,
                                   phimap::Checkpoint checkpoint) {
  const std::vector<PartRow>& test = parts[Part::kTest];
  report.parts = parts.counts;
  report.confidence = kConfidence;
  report.premise = kTestPremise;
  report.notes = PartNotes(parts.counts, parts_options_);
  report.trials = trials_;
  PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> scores, ScoresOf(program, test));
  PHIMAP_RETURN_IF_ERROR(head.task == HeadTask::kClasses
                             ? ReportClasses(scores, test, bias, head, report)
                             : ReportNumbers(scores, test, head, report));
  AddNotes(head, report);
  PHIMAP_ASSIGN_OR_RETURN(const std::optional<double> raw, RawError(test, checkpoint));
  if (raw.has_value()) {
    report.baselines.push_back(
        {absl::StrCat(learner_.type->name, " on the raw standardised columns"), *raw});
  }
  report.baselines.push_back(
      {head.task == HeadTask::kClasses ? "the most frequent class" : "the mean",
       TrivialError(test)});
  return absl::OkStatus();
}

namespace {

// The rows that a choice learns from and chooses by, as raw numbers.
class ChoiceRows {
 public:
  ChoiceRows(absl::Span<const PartRow> rows, int64_t columns, HeadTask task, bool weighted,
             absl::Span<const int32_t> places, int32_t class_count)
      : again_(rows, ExampleKind::kDense, columns), known_(rows, task, weighted) {
    for (int32_t& label : known_.labels) label = places[static_cast<size_t>(label)];
    set_ = {.rows = again_.numbers(),
            .labels = known_.labels,
            .class_count = class_count,
            .targets = known_.targets,
            .weights = known_.weights};
  }
  const TrainingSet& set() const { return set_; }

 private:
  ContentRows again_;
  KnownRows known_;
  TrainingSet set_;
};

}  // namespace

// Chooses what the spec of the features leaves open, by a sample of the rows that are trained on
// and the rows of the part validate.
absl::Status Training::Run::ChooseFeatures(Parts& parts, BuildMonitor& monitor) {
  const int32_t classes = *task_ == HeadTask::kClasses ? names_.count() : 0;
  const ChoiceRows train(raw_->rows(), columns_, *task_, weighted_, places_, classes);
  const ChoiceRows validate(parts[Part::kValidate], columns_, *task_, weighted_, places_, classes);
  if (features_->tuning.has_value()) {
    features_->tuning->keep_learner |= !MayLeaveRidge(rows_);
    PHIMAP_ASSIGN_OR_RETURN(TunedSpec tuned,
                            Tune(features_->spec, learner_, train.set(), validate.set(),
                                 spool_->rows(), *features_->tuning, monitor));
    features_->spec = std::move(tuned.spec);
    learner_ = std::move(tuned.learner);
    trials_ = std::move(tuned.trials);
    return absl::OkStatus();
  }
  if (!features_->learn_scales) return absl::OkStatus();
  if (validate.set().rows.rows() == 0) {
    return NothingToChooseBy("scales are", "learn none");
  }
  PHIMAP_ASSIGN_OR_RETURN(
      features_->spec.kernel,
      KernelWithLearnedScales(features_->spec, train.set(), validate.set(), [&](double share) {
        return monitor.Checkpoint("scales", kChosen * share);
      }));
  return absl::OkStatus();
}

absl::StatusOr<std::string> Training::Run::BuildFeatures(Parts& parts, BuildMonitor& monitor) {
  PHIMAP_RETURN_IF_ERROR(ChooseFeatures(parts, monitor));
  const BuildSpec& spec = features_->spec;
  if (const absl::Status enough = CheckStreamRows(spec, spool_->rows()); !enough.ok()) {
    const std::optional<ErrorDetail> detail = DetailOf(enough);
    return MakeError(enough.code(), detail->reason, absl::StrCat("spec.build.", detail->field),
                     absl::StrCat("of ", CountOf(rows_, "row"), ", ", spool_->rows(),
                                  " are trained on, and the features are built from these: ",
                                  WithoutField(enough)),
                     detail->metadata);
  }
  StreamSample sample(spec, IsString(kind_) ? 1 : columns_,
                      IsString(kind_) ? kind_ : ExampleKind::kDense);
  const auto checkpoint = [&] { return monitor.Checkpoint("sample", kChosen); };
  PHIMAP_RETURN_IF_ERROR(spool_->Read(RowsAtATime(), [&](const std::vector<PartRow>& rows) {
    PHIMAP_RETURN_IF_ERROR(checkpoint());
    const ContentRows again = Again(rows);
    return sample.Add(again.examples());
  }));
  PartOfMonitor building(monitor, kChosen, kBuilt);
  absl::StatusOr<BuiltVersion> built = BuildVersion(spec, std::move(sample), building);
  if (!built.ok()) return WithFieldPrefix(built.status(), "spec.build.");
  PHIMAP_ASSIGN_OR_RETURN(std::string bytes, WithNotes(built->bytes));
  PHIMAP_ASSIGN_OR_RETURN(const Artifact artifact, DecodeArtifact(bytes));
  PHIMAP_ASSIGN_OR_RETURN(built_engine_, Engine::Load(artifact.plan));
  built_residual_ = Residual::Of(artifact.plan, artifact.provenance);
  engine_ = built_engine_.get();
  residual_ = built_residual_.has_value() ? &*built_residual_ : nullptr;
  int64_t read = 0;
  PHIMAP_RETURN_IF_ERROR(spool_->Read(RowsAtATime(), [&](const std::vector<PartRow>& rows) {
    const double share = static_cast<double>(read) / static_cast<double>(spool_->rows());
    read += std::ssize(rows);
    PHIMAP_RETURN_IF_ERROR(monitor.Checkpoint("learn", kBuilt + (kLearned - kBuilt) * share));
    return LearnFrom(RidgeTraining::Part::kTrain, rows);
  }));
  spool_.reset();
  // Learners that need all rows learn from these too.
  if (!one_pass()) {
    kept_validate_ = std::ssize(parts[Part::kValidate]);
    PHIMAP_RETURN_IF_ERROR(LearnFrom(RidgeTraining::Part::kTrain, parts[Part::kValidate]));
  }
  return bytes;
}

// Says in the certificate where the features came from.
absl::StatusOr<std::string> Training::Run::WithNotes(absl::string_view bytes) const {
  PHIMAP_ASSIGN_OR_RETURN(Artifact artifact, DecodeArtifact(bytes));
  PHIMAP_ASSIGN_OR_RETURN(Certificate certificate, DecodeCertificate(artifact.certificate));
  if (features_->spec.mapping.has_landmarks()) {
    certificate.warnings.push_back(
        "the landmarks are rows that the head of the first version was trained on");
  }
  if (features_->tuning.has_value() || features_->learn_scales) {
    certificate.warnings.push_back(absl::StrCat(features_->tuning.has_value()
                                                    ? "the kernel and the landmarks were chosen"
                                                    : "the scales of the kernel were learned",
                                                " by labels, so theorems about features that know "
                                                "nothing of labels do not hold for these"));
  }
  artifact.certificate = EncodeCertificate(certificate);
  return EncodeArtifact(artifact);
}

absl::StatusOr<BuiltVersion> Training::Run::Finish(absl::string_view bytes, BuildMonitor& monitor) {
  if (rows_ == 0) {
    return MakeError(Code::kFailedPrecondition, reason::kStreamEmpty, "examples",
                     "the stream has 0 rows; expected labeled rows to train on");
  }
  PHIMAP_RETURN_IF_ERROR(monitor.Checkpoint("learn", 0));
  if (!task_.has_value()) PHIMAP_RETURN_IF_ERROR(TellTask());
  Parts parts = std::move(splitter_).Finish();
  for (PartRow& row : parts[Part::kTrain]) PHIMAP_RETURN_IF_ERROR(Learn(std::move(row)));
  // Learners that need all rows learn from these too, as ridge does by itself.
  if (!one_pass() && !features_.has_value()) {
    kept_validate_ = std::ssize(parts[Part::kValidate]);
    for (const PartRow& row : parts[Part::kValidate]) PHIMAP_RETURN_IF_ERROR(Learn(row));
  }
  if (!ChoosesAnything()) {
    int64_t& chose = parts.counts.rows[static_cast<size_t>(Part::kValidate)];
    parts.counts.rows[static_cast<size_t>(Part::kTrain)] += std::exchange(chose, 0);
  }
  PHIMAP_RETURN_IF_ERROR(LearnBlock());
  PHIMAP_RETURN_IF_ERROR(CheckParts(parts.counts));
  if (*task_ == HeadTask::kClasses) {
    PHIMAP_RETURN_IF_ERROR(names_.CheckDifferent());
    if (names_.count() < 2) {
      return MakeError(Code::kInvalidArgument, reason::kClassesTooFew, "examples.labels",
                       "expected at least two classes, got one");
    }
    places_ = names_.Places();
    // Only rows that are still to be looked at: the trained ones are in the sums.
    for (const Part part : {Part::kCalibrateLink, Part::kCalibrateSets, Part::kTest}) {
      for (PartRow& row : parts[part]) row.label = places_[static_cast<size_t>(row.label)];
    }
  }
  std::string of_features;
  if (features_.has_value()) {
    PHIMAP_ASSIGN_OR_RETURN(of_features, BuildFeatures(parts, monitor));
    bytes = of_features;
  }
  PHIMAP_ASSIGN_OR_RETURN(Learned learned, Solve(parts, [&](double share) {
                            return monitor.Checkpoint("learn", kLearned + 0.2 * share);
                          }));
  PHIMAP_ASSIGN_OR_RETURN(Artifact artifact, DecodeArtifact(bytes));
  LearnerSpec resolved = learner_;
  if (learned.choice.has_value()) resolved.values.Resolve("auto", learned.choice->chosen);
  Head head{.task = *task_, .learner_text = resolved.ToText()};
  PHIMAP_ASSIGN_OR_RETURN(head.features_digest, FeaturesDigest(bytes));
  if (head.task == HeadTask::kClasses) {
    head.classes = names_.InOrder(places_);
    head.integer_classes = names_.integers();
  }
  head.weights = std::move(learned.scores.weights);
  head.intercepts = std::move(learned.scores.intercepts);
  head.variance = std::move(learned.variance);
  TrainingReport report;
  report.choice = std::move(learned.choice);

  PHIMAP_RETURN_IF_ERROR(monitor.Checkpoint("calibrate", 0.8));
  PHIMAP_RETURN_IF_ERROR(Fold(std::move(artifact.plan), parts, head, report));
  const std::shared_ptr<const Engine> features(std::shared_ptr<const Engine>(), engine_);
  // Decoded again, as a plan is consumed by the program that is made of it.
  PHIMAP_ASSIGN_OR_RETURN(Artifact again, DecodeArtifact(bytes));
  PHIMAP_ASSIGN_OR_RETURN(const HeadProgram program,
                          head.folded ? HeadProgram::Folded(std::move(again.plan), head)
                                      : HeadProgram::Unfolded(features, head));
  PHIMAP_RETURN_IF_ERROR(Calibrate(program, parts, head));
  PHIMAP_RETURN_IF_ERROR(monitor.Checkpoint("report", 0.9));
  PHIMAP_RETURN_IF_ERROR(Report(program, parts, learned.bias, head, report, [&](double share) {
    return monitor.Checkpoint("report", 0.9 + 0.1 * share);
  }));
  head.report = EncodeReport(report);

  BuiltVersion built;
  PHIMAP_ASSIGN_OR_RETURN(built.certificate, DecodeCertificate(artifact.certificate));
  built.provenance = std::move(artifact.provenance);
  built.input_columns = engine_->is_remote() ? engine_->input_columns() : columns_;
  built.output_columns = engine_->output_columns();
  built.serving_type = engine_->serving_type();
  PHIMAP_ASSIGN_OR_RETURN(built.bytes,
                          WithHead(bytes, EncodeHead(head), EncodeVariance(head.variance)));
  built.head = std::make_shared<const HeadFacts>(FactsOf(head, !head.variance.empty()));
  PHIMAP_RETURN_IF_ERROR(monitor.Checkpoint("report", 1));
  return built;
}

Training::Training(const Engine& engine, const Residual* residual, TrainingSpec spec)
    : run_(std::make_unique<Run>(&engine, residual, std::nullopt, nullptr, std::move(spec))) {}
Training::Training(FeaturesOrder features, SpoolSpace& space, TrainingSpec spec)
    : run_(std::make_unique<Run>(nullptr, nullptr, std::move(features), &space, std::move(spec))) {}
Training::~Training() = default;

void Training::UseThreads(int threads) { run_->UseThreads(threads); }
int64_t Training::rows() const { return run_->rows(); }
int64_t Training::BytesWith(const TrainingBlock& block) const { return run_->BytesWith(block); }
absl::Status Training::Add(const TrainingBlock& block, Checkpoint checkpoint) {
  return run_->Add(block, checkpoint);
}
absl::StatusOr<BuiltVersion> Training::Finish(absl::string_view artifact, BuildMonitor& monitor) {
  return run_->Finish(artifact, monitor);
}

}  // namespace phimap
