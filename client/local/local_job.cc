#include "client/local/local_job.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/learn/evaluation_rows.h"
#include "core/learn/evaluation_run.h"
#include "core/learn/label_index.h"
#include "core/linalg/blas.h"
#include "core/mapping/build/version_build.h"
#include "core/mapping/sample/stream_sample.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"
#include "core/train/training.h"
#include "proto/calls/evaluation.h"
#include "proto/calls/specs.h"
#include "proto/error/request_errors.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// The threads that may call OpenBLAS at a time. Above about 130 it corrupts its heap.
class BlasThreads {
 public:
  static BlasThreads& OfProcess() {
    static BlasThreads* const threads = [] {
      UseOneBlasThread();
      auto* const made = new BlasThreads;
      // In a forked child no other thread is left, but one may have held the lock.
      pthread_atfork(nullptr, nullptr, [] { new (&OfProcess()) BlasThreads; });
      return made;
    }();
    return *threads;
  }

  // Waits until `count` threads may call. The monitor is asked meanwhile, and its error returned.
  absl::Status Take(int count, BuildMonitor& monitor) {
    while (true) {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        if (freed_.wait_for(lock, kPatience, [&] { return free_ >= count; })) {
          free_ -= count;
          return absl::OkStatus();
        }
      }
      PHIMAP_RETURN_IF_ERROR(monitor.Checkpoint("queued", 0));
    }
  }
  void Give(int count) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      free_ += count;
    }
    freed_.notify_all();
  }

  static constexpr int kMost = 64;

 private:
  static constexpr std::chrono::milliseconds kPatience{100};

  std::mutex mutex_;
  std::condition_variable freed_;
  int free_ = kMost;  // guarded by mutex_
};

// A monitor whose work holds the threads that it may use.
class OnBlasThreads final : public BuildMonitor {
 public:
  explicit OnBlasThreads(BuildMonitor& monitor)
      : monitor_(monitor), threads_(std::clamp(monitor.threads(), 1, BlasThreads::kMost)) {}
  ~OnBlasThreads() override {
    if (taken_) BlasThreads::OfProcess().Give(threads_);
  }
  absl::Status Wait() {
    PHIMAP_RETURN_IF_ERROR(BlasThreads::OfProcess().Take(threads_, monitor_));
    taken_ = true;
    return absl::OkStatus();
  }
  absl::Status Checkpoint(absl::string_view phase, double fraction) override {
    return monitor_.Checkpoint(phase, fraction);
  }
  int threads() const override { return threads_; }

 private:
  BuildMonitor& monitor_;
  const int threads_;
  bool taken_ = false;
};

class LocalBuild final : public LocalJob {
 public:
  explicit LocalBuild(BuildSpec spec) : spec_(std::move(spec)) {}

  absl::Status Add(const ExamplesView& rows, const v1::TrainingExamples&, BuildMonitor&) override {
    if (!sample_.has_value()) {
      const int64_t columns = SampleColumns(rows);
      PHIMAP_RETURN_IF_ERROR(FromRequestRoot(spec_.CheckExamples(rows.kind(), columns)));
      sample_.emplace(spec_, columns, rows.kind());
    }
    return InStream(sample_->Add(rows), sample_->rows());
  }

  absl::StatusOr<std::string> Finish(BuildMonitor& monitor) override {
    OnBlasThreads working(monitor);
    PHIMAP_RETURN_IF_ERROR(working.Wait());
    // Without rows BuildVersion returns the right error for an empty sample.
    StreamSample sample = sample_.has_value() ? *std::move(sample_) : StreamSample(spec_, 1);
    absl::StatusOr<BuiltVersion> built = BuildVersion(spec_, std::move(sample), working);
    if (!built.ok()) return FromRequestRoot(built.status());
    return std::move(built->bytes);
  }

 private:
  const BuildSpec spec_;
  std::optional<StreamSample> sample_;
};

class LocalTraining final : public LocalJob {
 public:
  LocalTraining(FeaturesOrder order, SpoolSpace& space, TrainingSpec spec, int threads)
      : training_(std::move(order), space, std::move(spec)) {
    training_.UseThreads(threads);
  }
  LocalTraining(std::shared_ptr<const FeatureMap> features, std::shared_ptr<const Engine> engine,
                TrainingSpec spec, int threads)
      : features_(std::move(features)),
        engine_(std::move(engine)),
        training_(*engine_, features_->residual(), std::move(spec)) {
    training_.UseThreads(threads);
  }

  absl::Status Add(const ExamplesView& rows, const v1::TrainingExamples& known,
                   BuildMonitor& monitor) override {
    absl::StatusOr<TrainingBlock> block = BlockFromProto(known, rows);
    if (!block.ok()) return WithFieldPrefix(block.status(), "examples.");
    if (engine_ != nullptr) {
      if (const absl::Status suits = engine_->CheckTakes(rows); !suits.ok()) {
        return WithFieldPrefix(suits, "examples.");
      }
    }
    OnBlasThreads working(monitor);
    PHIMAP_RETURN_IF_ERROR(working.Wait());
    const int64_t before = training_.rows();
    return InStream(training_.Add(*block, [&] { return working.Checkpoint("receive", 0); }),
                    before);
  }

  absl::StatusOr<std::string> Finish(BuildMonitor& monitor) override {
    OnBlasThreads working(monitor);
    PHIMAP_RETURN_IF_ERROR(working.Wait());
    absl::StatusOr<BuiltVersion> built =
        training_.Finish(features_ == nullptr ? "" : features_->artifact(), working);
    if (!built.ok()) return FromRequestRoot(built.status());
    return std::move(built->bytes);
  }

 private:
  const std::shared_ptr<const FeatureMap> features_;
  const std::shared_ptr<const Engine> engine_;
  Training training_;
};

class LocalEvaluation final : public LocalJob {
 public:
  LocalEvaluation(std::shared_ptr<const FeatureMap> features, std::shared_ptr<const Engine> engine,
                  EvaluationSpec spec)
      : features_(std::move(features)),
        engine_(std::move(engine)),
        spec_(std::move(spec)),
        rows_(*engine_, features_->residual(), KeepFor(spec_.learner)) {}

  absl::Status Add(const ExamplesView& rows, const v1::TrainingExamples& known,
                   BuildMonitor& monitor) override {
    if (known.labels_size() != rows.rows()) {
      return MakeError(
          Code::kInvalidArgument, reason::kLengthMismatch, "examples.labels",
          absl::StrCat("expected one label for each of ", CountOf(rows.rows(), "row"), ", got ",
                       known.labels_size()),
          {{"expected", absl::StrCat(rows.rows())}, {"actual", absl::StrCat(known.labels_size())}});
    }
    if (const absl::Status suits = engine_->CheckTakes(rows); !suits.ok()) {
      return WithFieldPrefix(suits, "examples.");
    }
    const int64_t before = rows_.rows();
    for (const std::string& label : known.labels()) {
      if (const absl::Status added = labels_.Add(label); !added.ok()) {
        return WithFieldPrefix(added, "examples.");
      }
    }
    const absl::Status added = rows_.Add(rows, [&] { return monitor.Checkpoint("receive", 0); });
    return InStream(
        WithFieldPrefix(added, absl::StrCat("examples.examples.", rows.kind_name(), ".")), before);
  }

  absl::StatusOr<std::string> Finish(BuildMonitor& monitor) override {
    OnBlasThreads working(monitor);
    PHIMAP_RETURN_IF_ERROR(working.Wait());
    absl::StatusOr<EvaluationOutcome> outcome = RunEvaluation(
        spec_, rows_, labels_, [&] { return features_->artifact(); },
        [&](int, double fraction) { return working.Checkpoint("evaluate", fraction); });
    if (!outcome.ok()) return InEvaluateRequest(outcome.status());
    v1::Evaluation evaluation;
    EvaluationToProto(spec_, *outcome, &evaluation);
    return evaluation.SerializeAsString();
  }

 private:
  const std::shared_ptr<const FeatureMap> features_;
  const std::shared_ptr<const Engine> engine_;
  const EvaluationSpec spec_;
  EvaluationRows rows_;
  LabelIndex labels_;
};

absl::Status NoFeatures() {
  return MakeError(Code::kInvalidArgument, reason::kFieldMissing, "spec",
                   "expected a feature map, or what to build");
}

}  // namespace

int UsableProcessors() {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  if (sched_getaffinity(0, sizeof(processors), &processors) != 0) return 1;
  return std::max(CPU_COUNT(&processors), 1);
}

absl::StatusOr<std::unique_ptr<LocalJob>> BuildLocally(const v1::BuildSpec& fields) {
  PHIMAP_ASSIGN_OR_RETURN(BuildSpec spec, BuildSpecFromText(fields.spec(), fields));
  if (spec.remote.has_value() && !spec.is_precomputed()) {
    return MakeError(Code::kFailedPrecondition, reason::kKernelServiceNotListed, "spec.kernel",
                     absl::StrCat("a service computes ", fields.kernel(),
                                  ", and only a server that lists it asks it; give the kernel's "
                                  "values, or build on that server"));
  }
  return std::make_unique<LocalBuild>(std::move(spec));
}

absl::StatusOr<std::unique_ptr<LocalJob>> TrainLocally(std::shared_ptr<const FeatureMap> features,
                                                       const v1::TrainingSpec& fields,
                                                       SpoolSpace& space, int threads) {
  PHIMAP_ASSIGN_OR_RETURN(TrainingSpec spec, TrainingSpecFromProto(fields));
  if (fields.has_build()) {
    PHIMAP_ASSIGN_OR_RETURN(FeaturesOrder order, FeaturesFromProto(fields));
    return std::make_unique<LocalTraining>(std::move(order), space, std::move(spec), threads);
  }
  if (features == nullptr) return NoFeatures();
  PHIMAP_ASSIGN_OR_RETURN(std::shared_ptr<const Engine> engine, features->engine());
  return std::make_unique<LocalTraining>(std::move(features), std::move(engine), std::move(spec),
                                         threads);
}

absl::StatusOr<std::unique_ptr<LocalJob>> EvaluateLocally(
    std::shared_ptr<const FeatureMap> features, const v1::EvaluationSpec& fields) {
  if (features == nullptr) return NoFeatures();
  PHIMAP_ASSIGN_OR_RETURN(EvaluationSpec spec, EvaluationSpecFromProto(fields));
  PHIMAP_ASSIGN_OR_RETURN(std::shared_ptr<const Engine> engine, features->engine());
  const absl::Status suits = CheckHasKernelFor(
      spec.learner, features->facts().provenance.kernel_text, engine->takes_strings(), "this map");
  if (!suits.ok()) return WithFieldPrefix(suits, "spec.");
  return std::make_unique<LocalEvaluation>(std::move(features), std::move(engine), std::move(spec));
}

}  // namespace phimap
