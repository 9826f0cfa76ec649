#include "core/train/tuning.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/engine/engine.h"
#include "core/learn/kernel_trials.h"
#include "core/learn/learned_scales.h"
#include "core/learn/ridge.h"
#include "core/learn/row_order.h"
#include "core/linalg/blas.h"
#include "core/linalg/tiles.h"
#include "core/mapping/build/kernel_access.h"
#include "core/mapping/build/version_build.h"
#include "core/mapping/sample/build_sample.h"
#include "core/mapping/sample/stream_sample.h"
#include "core/plan/artifact.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/thread/steady_time.h"
#include "core/train/training_rows.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// A round of kernels: how many rows, validation rows and landmarks a trial has, and how many
// candidates go on to the next round.
struct Rung {
  int64_t rows;
  int64_t validation_rows;
  int64_t landmarks;
  size_t kept;
};
constexpr Rung kRungs[] = {
    {2000, 1000, 300, 5}, {6000, 2000, 600, 3}, {kTuningRows, 5000, 1200, 1}};

// Multiples of gamma=scale, or of what stands for it in kernels with a length.
constexpr double kWidths[] = {0.25, 1, 4, 16};
// Numbers of landmarks that are tried for the version, and that at which policies and learners are
// compared.
constexpr int64_t kCounts[] = {250, 500, 1000, 2000, 4000, 8000};
constexpr int64_t kPolicyLandmarks = 500;
constexpr absl::string_view kPolicies[] = {"kmeans", "rpcholesky"};
constexpr absl::string_view kClassLearners[] = {"linear_svm(C=1)", "linear_svm(C=10)",
                                                "logistic(C=10)"};
constexpr int64_t kLearnerLandmarks = 1000;
// A build with twice as many landmarks takes about this many times as long.
constexpr double kGrowth = 6;
constexpr int64_t kMappedRows = 256;
constexpr int kTimedRows = 50;

// Returns the kernel of a family with this width, on columns whose mean variance is `variance`:
// with a gamma, of squared or of absolute distances, or a length.
std::string KernelText(absl::string_view family, double width, double columns, double variance) {
  if (family == "rbf") return absl::StrFormat("rbf(gamma=%.4g)", width / (columns * variance));
  if (family == "laplacian") {
    return absl::StrFormat("laplacian(gamma=%.4g)", width / (columns * std::sqrt(variance)));
  }
  const double length = std::sqrt(columns * variance / (2 * width));
  return absl::StrFormat("%s, length_scale=%.4g)", family, length);
}

// Families of candidates: the kernel's text up to its width, and whether it is tried on raw columns
// too.
struct KernelFamily {
  absl::string_view text;
  bool raw_too;
};
constexpr KernelFamily kFamilies[] = {{"rbf", true},
                                      {"laplacian", true},
                                      {"matern(nu=1.5", false},
                                      {"rational_quadratic(alpha=1", false}};

struct Candidate {
  size_t family = 0;
  double width = 1;
  bool standardize = true;
  std::string text;
  double loss = 0;
};

// Labeled rows in random order, raw and standardised.
struct Rows {
  Matrix<double> raw;
  Matrix<double> standardised;
  std::vector<int32_t> labels;
  std::vector<double> targets;
  std::vector<double> weights;
  int32_t class_count = 0;

  TrainingSet First(int64_t count, bool standardize) const {
    const auto n = static_cast<size_t>(std::min(count, raw.rows()));
    const auto few = [&](const auto& values) {
      return absl::MakeConstSpan(values).first(std::min(n, values.size()));
    };
    return {.rows = (standardize ? standardised : raw).view().Rows(0, static_cast<int64_t>(n)),
            .labels = few(labels),
            .class_count = class_count,
            .targets = few(targets),
            .weights = few(weights)};
  }
};

Rows Ordered(const TrainingSet& set, const std::vector<int64_t>& order,
             const Standardizer& standardizer) {
  Rows rows{.raw = Matrix<double>::Uninit(std::ssize(order), set.rows.cols()),
            .standardised = {},
            .labels = {},
            .targets = {},
            .weights = {},
            .class_count = set.class_count};
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t from = order[i];
    std::copy_n(set.rows.row(from), set.rows.cols(), rows.raw.row(static_cast<int64_t>(i)));
    if (!set.labels.empty()) rows.labels.push_back(set.labels[from]);
    if (!set.targets.empty()) rows.targets.push_back(set.targets[from]);
    if (!set.weights.empty()) rows.weights.push_back(set.weights[from]);
  }
  rows.standardised = standardizer.Of(rows.raw.view());
  return rows;
}

// What a version's features give a learner.
struct Tried {
  LearnerSpec learner;
  TuningTrial trial;
  // Standard error of the share of errors.
  double standard_error = 0;
  absl::Duration took;
};

// Whether the error is that of a kernel or a policy that these rows do not suit, and not of the
// monitor or the machine: another candidate may do.
bool IsOfCandidate(const absl::Status& status) {
  return status.code() == Code::kInvalidArgument || status.code() == Code::kFailedPrecondition ||
         status.code() == Code::kOutOfRange;
}

class Tuner {
 public:
  Tuner(const BuildSpec& base, const LearnerSpec& learner, int64_t all_rows,
        const TuningOptions& options, BuildMonitor& monitor)
      : base_(base),
        learner_(learner),
        all_rows_(all_rows),
        options_(options),
        monitor_(monitor),
        begin_(SteadyNow()) {}

  absl::StatusOr<TunedSpec> Run(const TrainingSet& train, const TrainingSet& validate) {
    PHIMAP_RETURN_IF_ERROR(Prepare(train, validate));
    PHIMAP_RETURN_IF_ERROR(TryKernels());
    PHIMAP_RETURN_IF_ERROR(TryVersions());
    return std::move(tuned_);
  }

 private:
  double variance(bool standardize) const { return standardize ? 1 : raw_variance_; }
  absl::Duration spent() const { return SteadyNow() - begin_; }
  // Share of the budget that is spent, for the progress.
  double share() const { return std::min(1.0, absl::FDivDuration(spent(), options_.budget)); }

  absl::Status Prepare(const TrainingSet& train, const TrainingSet& validate);
  absl::Status TryKernels();
  absl::Status TryRung(const Rung& rung, std::vector<Candidate>& candidates);
  absl::Status AddScaled(std::vector<Candidate>& candidates);
  absl::Status TryVersions();
  absl::Status TryLearners(const BuildSpec& spec);
  BuildSpec SpecWith(absl::string_view policy, int64_t landmarks) const;
  absl::StatusOr<Tried> TryVersion(const BuildSpec& spec, absl::Span<const LearnerSpec> learners,
                                   absl::Time deadline, std::vector<Tried>* others);
  template <typename T>
  absl::StatusOr<Matrix<double>> FeaturesOf(const Engine& engine, ConstMatrixView<double> rows,
                                            absl::FunctionRef<absl::Status()> checkpoint);
  Tried Judge(const BuildSpec& spec, const LearnerSpec& learner, const Matrix<double>& scores,
              std::optional<double> loss) const;
  void Record(const Candidate& candidate, int64_t rows);

  const BuildSpec& base_;
  const LearnerSpec learner_;
  const int64_t all_rows_;
  const TuningOptions options_;
  BuildMonitor& monitor_;
  const absl::Time begin_;

  Rows train_;
  Rows validate_;
  double raw_variance_ = 0;
  TunedSpec tuned_;
};

absl::Status Tuner::Prepare(const TrainingSet& train, const TrainingSet& validate) {
  for (const TrainingSet* set : {&train, &validate}) {
    if (set->rows.rows() >= kLeastTuningRows) continue;
    return MakeError(
        Code::kInvalidArgument, reason::kRowsTooFew, "examples",
        absl::StrCat("tuning needs at least ", kLeastTuningRows,
                     " rows to learn from and as many of the part validate to choose by, got ",
                     train.rows.rows(), " and ", validate.rows.rows(),
                     "; give a spec, or more rows: 140 are enough if no column says which part a "
                     "row is in"));
  }
  const Standardizer standardizer(train.rows);
  raw_variance_ = standardizer.mean_variance();
  if (!(raw_variance_ > 0) || !std::isfinite(raw_variance_)) {
    return MakeError(Code::kFailedPrecondition, reason::kGammaUndefined, "examples",
                     "all columns are constant, or their variance is not finite");
  }
  train_ = Ordered(train, RowOrder(train.rows.rows(), base_.seed).Next(), standardizer);
  std::vector<int64_t> order(static_cast<size_t>(validate.rows.rows()));
  std::iota(order.begin(), order.end(), int64_t{0});
  validate_ = Ordered(validate, order, standardizer);
  tuned_.learner = learner_;
  return absl::OkStatus();
}

void Tuner::Record(const Candidate& candidate, int64_t rows) {
  tuned_.trials.push_back({.spec = "",
                           .kernel = candidate.text,
                           .standardize = candidate.standardize,
                           .learner = "ridge",
                           .rows = rows,
                           .loss = candidate.loss,
                           .error = std::nullopt,
                           .microseconds = std::nullopt});
}

absl::Status Tuner::TryRung(const Rung& rung, std::vector<Candidate>& candidates) {
  const KernelTrialOptions options{.landmarks = std::min(rung.landmarks, options_.max_landmarks),
                                   .seed = base_.seed};
  struct Sets {
    TrainingSet train, validate;
    std::unique_ptr<const KernelTrials> trials;
  };
  Sets sets[2];
  for (const bool standardize : {false, true}) {
    Sets& set = sets[standardize ? 1 : 0];
    set.train = train_.First(rung.rows, standardize);
    set.validate = validate_.First(rung.validation_rows, standardize);
    set.trials = std::make_unique<const KernelTrials>(set.train, set.validate, options);
  }
  std::vector<absl::Status> failed(candidates.size());
  std::atomic<bool> stopped{false};
  const std::thread::id caller = std::this_thread::get_id();
  const auto checkpoint = [&](double) -> absl::Status {
    if (std::this_thread::get_id() != caller) {
      return stopped.load() ? absl::CancelledError() : absl::OkStatus();
    }
    const absl::Status status = monitor_.Checkpoint("tune", share());
    if (!status.ok()) stopped.store(true);
    return status;
  };
  PHIMAP_RETURN_IF_ERROR(
      ForEachTile(monitor_.threads(), std::ssize(candidates), checkpoint, [&](int64_t i) {
        Candidate& candidate = candidates[i];
        absl::StatusOr<KernelTrials::Fit> fit = sets[candidate.standardize ? 1 : 0].trials->Try(
            KernelExpression::Parse(candidate.text).value(), checkpoint);
        if (fit.ok()) {
          candidate.loss = fit->error;
        } else {
          failed[i] = fit.status();
        }
      }));
  PHIMAP_RETURN_IF_ERROR(checkpoint(0));
  std::vector<Candidate> tried;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!failed[i].ok()) {
      if (!IsOfCandidate(failed[i])) return failed[i];
      continue;
    }
    Record(candidates[i], std::min(rung.rows, train_.raw.rows()));
    tried.push_back(std::move(candidates[i]));
  }
  if (tried.empty()) return failed.empty() ? absl::OkStatus() : failed.front();
  std::stable_sort(tried.begin(), tried.end(),
                   [](const Candidate& a, const Candidate& b) { return a.loss < b.loss; });
  candidates = std::move(tried);
  return absl::OkStatus();
}

// Adds the best two candidates that have one family each, and standardised columns, with learned
// scales.
absl::Status Tuner::AddScaled(std::vector<Candidate>& candidates) {
  const Rung& rung = kRungs[1];
  const TrainingSet train = train_.First(rung.rows, true);
  const TrainingSet validate = validate_.First(rung.validation_rows, true);
  std::set<size_t> families;
  std::vector<Candidate> scaled;
  for (const Candidate& candidate : candidates) {
    if (families.size() == 2) break;
    if (!candidate.standardize || !families.insert(candidate.family).second) continue;
    const auto checkpoint = [&](double) { return monitor_.Checkpoint("tune", share()); };
    const absl::StatusOr<LearnedScales> learned = LearnScales(
        KernelExpression::Parse(candidate.text).value(), train, validate,
        {.landmarks = std::min(rung.landmarks, options_.max_landmarks), .seed = base_.seed},
        checkpoint);
    if (!learned.ok()) {
      if (!IsOfCandidate(learned.status())) return learned.status();
      continue;  // so many columns that the kernel's text would be too long
    }
    if (learned->best == 0) continue;
    const LearnedScales::Trial& best = learned->trials[learned->best];
    scaled.push_back(candidate);
    scaled.back().text = best.kernel.ToText();
    scaled.back().loss = best.error;
    Record(scaled.back(), train.rows.rows());
  }
  candidates.insert(candidates.end(), scaled.begin(), scaled.end());
  return absl::OkStatus();
}

absl::Status Tuner::TryKernels() {
  const auto p = static_cast<double>(train_.raw.cols());
  const auto with_width = [&](Candidate candidate, double width) {
    candidate.width = width;
    candidate.text =
        KernelText(kFamilies[candidate.family].text, width, p, variance(candidate.standardize));
    return candidate;
  };
  std::vector<Candidate> candidates;
  for (size_t family = 0; family < std::size(kFamilies); ++family) {
    for (const bool standardize : {true, false}) {
      if (!standardize && !kFamilies[family].raw_too) continue;
      for (const double width : kWidths) {
        candidates.push_back(with_width({.family = family, .standardize = standardize}, width));
      }
    }
  }
  for (size_t round = 0; round < std::size(kRungs); ++round) {
    // After the first round, no round of kernels begins when a quarter of the time is spent.
    if (round > 0 && share() > 0.25) break;
    PHIMAP_RETURN_IF_ERROR(TryRung(kRungs[round], candidates));
    candidates.resize(std::min(candidates.size(), kRungs[round].kept));
    if (round == 0) {
      std::set<std::string> texts;
      for (const Candidate& candidate : candidates) texts.insert(candidate.text);
      const std::vector<Candidate> best = candidates;
      for (const Candidate& candidate : best) {
        for (const double factor : {0.5, 2.0}) {
          Candidate other = with_width(candidate, candidate.width * factor);
          if (texts.insert(other.text).second) candidates.push_back(std::move(other));
        }
      }
    } else if (round == 1) {
      PHIMAP_RETURN_IF_ERROR(AddScaled(candidates));
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.loss < b.loss; });
  tuned_.spec = base_;
  tuned_.spec.standardize = candidates.front().standardize;
  PHIMAP_ASSIGN_OR_RETURN(tuned_.spec.kernel, KernelExpression::Parse(candidates.front().text));
  return absl::OkStatus();
}

BuildSpec Tuner::SpecWith(absl::string_view policy, int64_t landmarks) const {
  BuildSpec spec = tuned_.spec;
  spec.mapping =
      MappingSpec::Parse(absl::StrCat("f2(landmarks=", landmarks, ", policy=", policy, ")"))
          .value();
  spec.mapping.serving_type = base_.mapping.serving_type;
  return spec;
}

template <typename T>
absl::StatusOr<Matrix<double>> Tuner::FeaturesOf(const Engine& engine, ConstMatrixView<double> rows,
                                                 absl::FunctionRef<absl::Status()> checkpoint) {
  EngineScratch scratch;
  Matrix<T> features = Matrix<T>::Uninit(rows.rows(), engine.output_columns());
  PHIMAP_RETURN_IF_ERROR(checkpoint());
  TransformPart part{RowsView{reinterpret_cast<const char*>(rows.row(0)), FloatType::kFloat64,
                              rows.rows(), rows.cols()},
                     features.data(), absl::OkStatus()};
  engine.Transform(absl::MakeSpan(&part, 1), scratch);
  PHIMAP_RETURN_IF_ERROR(part.status);
  return Converted<double, T>(features.view());
}

// Rows count alike in the error, and by their weights in the loss.
Tried Tuner::Judge(const BuildSpec& spec, const LearnerSpec& learner, const Matrix<double>& scores,
                   std::optional<double> loss) const {
  const int64_t n = scores.rows();
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (validate_.class_count == 0) {
      sum += (scores(i, 0) - validate_.targets[i]) * (scores(i, 0) - validate_.targets[i]);
      continue;
    }
    const int64_t answer =
        scores.cols() == 1
            ? (scores(i, 0) > 0 ? 1 : 0)
            : std::max_element(scores.row(i), scores.row(i) + scores.cols()) - scores.row(i);
    sum += answer != validate_.labels[i] ? 1 : 0;
  }
  const double mean = sum / static_cast<double>(n);
  const double error = validate_.class_count == 0 ? std::sqrt(mean) : mean;
  return {.learner = learner,
          .trial = {.spec = spec.mapping.ToText(),
                    .kernel = spec.KernelText(),
                    .standardize = spec.standardize,
                    .learner = learner.ToText(),
                    .rows = train_.raw.rows(),
                    .loss = loss,
                    .error = error,
                    .microseconds = std::nullopt},
          .standard_error = std::sqrt(mean * std::max(0.0, 1 - mean) / static_cast<double>(n)),
          .took = absl::ZeroDuration()};
}

// Builds the version from the rows and returns what ridge makes of it; `others` gets what the other
// learners make of it, as far as the deadline allows.
absl::StatusOr<Tried> Tuner::TryVersion(const BuildSpec& spec,
                                        absl::Span<const LearnerSpec> learners, absl::Time deadline,
                                        std::vector<Tried>* others) {
  const absl::Time begin = SteadyNow();
  PartOfMonitor step(monitor_, share(), share(), "tune");
  StreamSample sample(spec, train_.raw.cols());
  const RowsView rows{reinterpret_cast<const char*>(train_.raw.data()), FloatType::kFloat64,
                      train_.raw.rows(), train_.raw.cols()};
  PHIMAP_RETURN_IF_ERROR(sample.Add(rows));
  PHIMAP_ASSIGN_OR_RETURN(const BuiltVersion built, BuildVersion(spec, std::move(sample), step));
  PHIMAP_ASSIGN_OR_RETURN(Artifact artifact, DecodeArtifact(built.bytes));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Engine> engine, Engine::Load(artifact.plan));
  const auto checkpoint = [&] { return monitor_.Checkpoint("tune", share()); };
  const auto map = [&](const Matrix<double>& from, int64_t first, int64_t count) {
    return engine->serving_type() == FloatType::kFloat32
               ? FeaturesOf<float>(*engine, from.view().Rows(first, count), checkpoint)
               : FeaturesOf<double>(*engine, from.view().Rows(first, count), checkpoint);
  };
  const HeadTask task = train_.class_count == 0 ? HeadTask::kNumbers : HeadTask::kClasses;
  RidgeTraining ridge({}, task, engine->output_columns());
  Matrix<double> validation(validate_.raw.rows(), engine->output_columns());
  Matrix<double> kept;
  if (!learners.empty()) {
    kept = Matrix<double>::Uninit(train_.raw.rows(), engine->output_columns());
  }
  for (const bool of_train : {true, false}) {
    const Rows& from = of_train ? train_ : validate_;
    for (int64_t first = 0; first < from.raw.rows(); first += kMappedRows) {
      const int64_t count = std::min(kMappedRows, from.raw.rows() - first);
      PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> features, map(from.raw, first, count));
      const auto part = [&](const auto& values) {
        return values.empty() ? absl::MakeConstSpan(values)
                              : absl::MakeConstSpan(values).subspan(static_cast<size_t>(first),
                                                                    static_cast<size_t>(count));
      };
      const RowLabels known{part(from.labels), part(from.targets), part(from.weights)};
      PHIMAP_RETURN_IF_ERROR(
          ridge.Add<double>(of_train ? RidgeTraining::Part::kTrain : RidgeTraining::Part::kValidate,
                            features.view(), known, [&](double) { return checkpoint(); }));
      if (!of_train) std::copy_n(features.data(), features.size(), validation.row(first));
      if (of_train && !kept.empty()) std::copy_n(features.data(), features.size(), kept.row(first));
    }
  }
  PHIMAP_ASSIGN_OR_RETURN(const RidgeFit fit, ridge.Solve({.class_count = train_.class_count,
                                                           .learn_from_validation = false},
                                                          [&](double) { return checkpoint(); }));
  Matrix<double> scores(validation.rows(), fit.scores.weights.cols());
  Multiply(1, validation.view(), fit.scores.weights.view(), 0, scores.view());
  for (int64_t i = 0; i < scores.rows(); ++i) {
    for (int64_t k = 0; k < scores.cols(); ++k) scores(i, k) += fit.scores.intercepts[k];
  }
  double loss = fit.trials.front().error;
  for (const RidgeFit::Trial& trial : fit.trials) loss = std::min(loss, trial.error);
  Tried tried = Judge(spec, LearnerSpec::Parse("ridge()").value(), scores, loss);
  std::vector<double> times;
  for (int i = 0; i < kTimedRows; ++i) {
    const auto start = std::chrono::steady_clock::now();
    PHIMAP_RETURN_IF_ERROR(map(validate_.raw, i % validate_.raw.rows(), 1).status());
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
            .count());
  }
  std::nth_element(times.begin(), times.begin() + kTimedRows / 2, times.end());
  tried.trial.microseconds = times[kTimedRows / 2];
  tried.took = SteadyNow() - begin;
  for (const LearnerSpec& spec_of_learner : learners) {
    PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Learner> learner,
                            MakeLearner(spec_of_learner));
    const TrainingSet set = train_.First(train_.raw.rows(), false);
    bool late = false;
    const auto in_time = [&](double) {
      late = SteadyNow() > deadline;
      return late ? absl::DeadlineExceededError("") : checkpoint();
    };
    const absl::StatusOr<std::unique_ptr<const Model>> model =
        learner->Train({.rows = std::as_const(kept).view(),
                        .labels = set.labels,
                        .class_count = set.class_count,
                        .targets = set.targets,
                        .weights = set.weights},
                       base_.seed, in_time);
    if (late) break;
    if (!model.ok()) {
      if (!IsOfCandidate(model.status())) return model.status();
      continue;
    }
    Matrix<double> answers(validation.rows(), (*model)->score_count());
    PHIMAP_RETURN_IF_ERROR((*model)->Scores(std::as_const(validation).view(), answers.view(),
                                            [&](double) { return checkpoint(); }));
    others->push_back(Judge(spec, spec_of_learner, answers, std::nullopt));
    others->back().trial.microseconds = tried.trial.microseconds;
  }
  return tried;
}

absl::Status Tuner::TryVersions() {
  const int64_t n = train_.raw.rows();
  // The version at the end has more rows, and the same landmarks.
  const double of_version = std::max(1.0, static_cast<double>(all_rows_) / static_cast<double>(n));
  std::optional<Tried> best;
  const auto consider = [&](const BuildSpec& spec) -> absl::StatusOr<absl::Duration> {
    absl::StatusOr<Tried> tried = TryVersion(spec, {}, absl::InfiniteFuture(), nullptr);
    if (!tried.ok()) {
      if (!IsOfCandidate(tried.status())) return tried.status();
      return absl::ZeroDuration();
    }
    tuned_.trials.push_back(tried->trial);
    const absl::Duration took = tried->took;
    if (!best.has_value() || *tried->trial.loss < *best->trial.loss) {
      best = *std::move(tried);
      tuned_.spec.mapping = spec.mapping;
    }
    return took;
  };
  absl::Duration last;
  std::string policy = "uniform";
  int64_t before = 0;
  for (const int64_t given : kCounts) {
    // With few rows, all of them but those that the certificate holds out.
    const int64_t count = std::min({given, options_.max_landmarks, n * 4 / 5});
    if (count <= before) break;
    const double growth = before == 0
                              ? 1
                              : std::pow(static_cast<double>(count) / static_cast<double>(before),
                                         std::log2(kGrowth));
    if (before > 0 && spent() + last * growth * (1 + of_version) > options_.budget) break;
    PHIMAP_ASSIGN_OR_RETURN(last, consider(SpecWith(policy, count)));
    // Policies are compared once, with as many landmarks as the rows allow up to kPolicyLandmarks.
    if (count == std::min({kPolicyLandmarks, options_.max_landmarks, n * 4 / 5})) {
      for (const absl::string_view other : kPolicies) {
        if (spent() + last * 4 > options_.budget / 2) break;
        PHIMAP_RETURN_IF_ERROR(consider(SpecWith(other, count)).status());
      }
      if (best.has_value()) policy = std::string(tuned_.spec.mapping.policy->name);
    }
    before = count;
  }
  if (!best.has_value()) {
    return MakeError(Code::kFailedPrecondition, reason::kRowsTooFew, "examples",
                     "no version could be built from these rows; give a spec, or more rows");
  }
  // The learners that are tried take no weights of rows.
  if (options_.keep_learner || train_.class_count == 0 || !train_.weights.empty()) {
    return absl::OkStatus();
  }
  return TryLearners(SpecWith(tuned_.spec.mapping.policy->name,
                              std::min(kLearnerLandmarks, tuned_.spec.mapping.landmarks)));
}

// A learner other than ridge must be better by more than a standard error, because ridge has
// deviations and is trained in one pass.
absl::Status Tuner::TryLearners(const BuildSpec& spec) {
  const absl::Time deadline = begin_ + options_.budget * 0.7;
  if (SteadyNow() > deadline) return absl::OkStatus();
  std::vector<LearnerSpec> learners;
  for (const absl::string_view text : kClassLearners) {
    learners.push_back(LearnerSpec::Parse(text).value());
  }
  std::vector<Tried> others;
  PHIMAP_ASSIGN_OR_RETURN(const Tried ridge, TryVersion(spec, learners, deadline, &others));
  double least = *ridge.trial.error - ridge.standard_error;
  for (const Tried& other : others) {
    tuned_.trials.push_back(other.trial);
    if (!(*other.trial.error < least)) continue;
    least = *other.trial.error;
    tuned_.learner = other.learner;
  }
  return absl::OkStatus();
}

}  // namespace

std::string TuningOptions::ToText() const {
  return absl::StrCat("budget=", absl::FormatDuration(budget), ", max_landmarks=", max_landmarks,
                      ", keep_learner=", keep_learner);
}

BuildSpec SpecToTune() {
  return {.mapping = MappingSpec::Parse("f2(landmarks=1)").value(),
          .kernel = KernelExpression::Parse("rbf(gamma=scale)").value(),
          .remote = std::nullopt};
}

double TuningBytes(const TuningOptions& options, int64_t columns, double classes) {
  const auto d = static_cast<double>(options.max_landmarks);
  const auto p = static_cast<double>(columns);
  // Rows raw and standardised, and the copy that they came as; the largest trial: the build, the
  // moments of ridge, and the features of learners, which have fewer landmarks.
  const double rows = 8 * kTuningRows * 1.3 * (3 * p + 3);
  const double build = 4 * 8 * d * d;
  const double validation = 8 * kTuningRows * d;
  const double learners = 8 * kTuningRows * static_cast<double>(kLearnerLandmarks) * 2;
  return rows + build + validation + std::max(learners, RidgeTraining::Bytes(d, classes, false));
}

absl::StatusOr<TunedSpec> Tune(const BuildSpec& base, const LearnerSpec& learner,
                               const TrainingSet& train, const TrainingSet& validate,
                               int64_t all_rows, const TuningOptions& options,
                               BuildMonitor& monitor) {
  return Tuner(base, learner, all_rows, options, monitor).Run(train, validate);
}

absl::StatusOr<KernelExpression> KernelWithLearnedScales(const BuildSpec& spec,
                                                         const TrainingSet& train,
                                                         const TrainingSet& validate,
                                                         Checkpoint checkpoint) {
  BuildSpec few = spec;
  PHIMAP_ASSIGN_OR_RETURN(few.mapping, MappingSpec::Parse("f2(landmarks=1)"));
  StreamSample stream(few, train.rows.cols());
  const RowsView rows{reinterpret_cast<const char*>(train.rows.row(0)), FloatType::kFloat64,
                      train.rows.rows(), train.rows.cols()};
  PHIMAP_RETURN_IF_ERROR(stream.Add(rows));
  PHIMAP_RETURN_IF_ERROR(CheckStream(few, stream));
  const BuildSample sample = Divide(few, std::move(stream));
  PHIMAP_ASSIGN_OR_RETURN(const KernelExpression kernel, ResolvedKernel(few, sample));
  const Matrix<double> inputs = AfterInputStage(sample.input, train.rows);
  const Matrix<double> others = AfterInputStage(sample.input, validate.rows);
  TrainingSet learned_from = train;
  learned_from.rows = inputs.view();
  TrainingSet chosen_by = validate;
  chosen_by.rows = others.view();
  PHIMAP_ASSIGN_OR_RETURN(
      const LearnedScales learned,
      LearnScales(kernel, learned_from, chosen_by, {.seed = spec.seed}, checkpoint));
  return learned.trials[learned.best].kernel;
}

}  // namespace phimap
