// A version that is ready to serve, and the handle that keeps it in memory.
#ifndef PHIMAP_SERVER_REGISTRY_VERSION_HANDLE_H_
#define PHIMAP_SERVER_REGISTRY_VERSION_HANDLE_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/digest/named_columns.h"
#include "core/drift/drift_reference.h"
#include "core/engine/engine.h"
#include "core/head/head_answers.h"
#include "core/plan/examples.h"
#include "core/plan/residual.h"
#include "server/kernel_client/kernel_queue.h"
#include "server/observe/version_series.h"
#include "server/store/store.h"

namespace phimap {

// Decides which requests give a row to the test for drift. At most one row is due in each interval,
// and none while sampling is off, as it is at first. A request that gives no row costs one relaxed
// load. Times are on the clock of SteadyNow. Thread-safe and lock-free.
class RowSampling {
 public:
  // Samples at most one row an interval, the first one at once.
  void Start(absl::Duration interval) {
    interval_.store(absl::ToInt64Nanoseconds(interval), std::memory_order_relaxed);
    int64_t off = kOff;
    due_.compare_exchange_strong(off, 0, std::memory_order_relaxed);
  }
  void Stop() { due_.store(kOff, std::memory_order_relaxed); }
  bool is_on() const { return due_.load(std::memory_order_relaxed) != kOff; }

  // Whether a row is due at `now`. If so, no other is due for an interval.
  bool IsDue(absl::Time now) {
    int64_t due = due_.load(std::memory_order_relaxed);
    if (due == kOff) return false;
    const int64_t at = absl::ToUnixNanos(now);
    return at >= due &&
           due_.compare_exchange_strong(due, at + interval_.load(std::memory_order_relaxed),
                                        std::memory_order_relaxed);
  }

 private:
  static constexpr int64_t kOff = std::numeric_limits<int64_t>::max();

  std::atomic<int64_t> due_{kOff};
  std::atomic<int64_t> interval_{0};
};

// What of a version is in memory. Each part is loaded, counted and unloaded by itself, so that a
// version which only predicts does not hold its projection.
enum class LivePart {
  // The features.
  kFeatures,
  // The scores of the head.
  kAnswers,
  // Features and scores, and what the deviations of answers take if the head has them.
  kBoth,
};
inline constexpr LivePart kLiveParts[] = {LivePart::kFeatures, LivePart::kAnswers, LivePart::kBoth};

// Immutable once it is shared.
struct LiveVersion {
  VersionRecord record;
  LivePart part = LivePart::kFeatures;
  // Computes the features, or, for kAnswers of a folded head, its scores.
  std::shared_ptr<const Engine> engine;
  // Makes answers of what the engine computes; null for kFeatures.
  std::unique_ptr<const HeadAnswers> head = nullptr;
  // What is known of the head; null if the version has none.
  std::shared_ptr<const HeadFacts> head_facts = nullptr;
  // Set for F2 only.
  std::optional<Residual> residual = std::nullopt;
  // Queue to the service that computes a remote kernel; null otherwise. The engine then maps the
  // values that the service returns.
  std::shared_ptr<KernelQueue> kernel;
  // The certificate's bytes as the artifact holds them; serving does not read them.
  std::string certificate;
  // Facts about the version's build, for people.
  bool standardize = false;
  uint64_t seed = 0;
  NamedColumns columns = {};
  // What the test for drift compares served rows with; null if the artifact has none.
  std::shared_ptr<const DriftReference> drift_reference;
  // The version's series among the metrics. May be null.
  std::unique_ptr<const VersionSeries::Lease> series;
  // Counters, which change although the version does not.
  mutable VersionTally tally = {};
  // When a row is due for the test for drift.
  mutable RowSampling sampling = {};

  int64_t memory_bytes() const {
    return engine->memory_bytes() + (head == nullptr ? 0 : head->memory_bytes()) +
           static_cast<int64_t>(certificate.size()) + columns.memory_bytes() +
           (drift_reference == nullptr ? 0 : drift_reference->memory_bytes()) +
           (kernel == nullptr ? 0 : kernel->memory_bytes());
  }
};

// Pins a version: engine and record stay unchanged while any copy of the handle lives. Copies are
// cheap.
class VersionHandle {
 public:
  VersionHandle() = default;
  explicit VersionHandle(std::shared_ptr<const LiveVersion> version)
      : version_(std::move(version)) {}

  explicit operator bool() const { return version_ != nullptr; }
  const VersionRecord& record() const { return version_->record; }
  LivePart part() const { return version_->part; }
  const Engine& engine() const { return *version_->engine; }
  // REQUIRES: part() is not kFeatures.
  const HeadAnswers& head() const { return *version_->head; }
  const std::shared_ptr<const HeadFacts>& head_facts() const { return version_->head_facts; }
  // Whether rows with this many numbers can be mapped. The version's number of columns is accepted,
  // and one more, for K(x, x), if kernel values come with the request.
  bool TakesColumns(int64_t columns) const {
    return kernel() != nullptr ? columns == record().input_columns : engine().TakesColumns(columns);
  }
  // Returns OK if the version maps such examples, and otherwise INVALID_ARGUMENT
  // (EXAMPLE_KIND_MISMATCH, COLUMNS_MISMATCH) with the field.
  absl::Status CheckTakes(const ExamplesView& examples) const {
    return kernel() != nullptr ? kernel()->CheckTakes(examples) : engine().CheckTakes(examples);
  }
  // Number of columns of an example.
  int64_t input_columns() const {
    return kernel() != nullptr ? record().input_columns : engine().input_columns();
  }
  // Queue for remote kernel values; null if none are needed.
  KernelQueue* kernel() const { return version_->kernel.get(); }
  // Null if the mapping has no residual.
  const Residual* residual() const {
    return version_->residual.has_value() ? &*version_->residual : nullptr;
  }
  const std::string& certificate() const { return version_->certificate; }
  bool standardize() const { return version_->standardize; }
  uint64_t seed() const { return version_->seed; }
  const NamedColumns& columns() const { return version_->columns; }
  // Null if drift of the version's rows is not tested.
  const std::shared_ptr<const DriftReference>& drift_reference() const {
    return version_->drift_reference;
  }
  RowSampling& sampling() const { return version_->sampling; }
  // Counter of the rows that the version mapped; null if they are not counted.
  prometheus::Counter* version_rows() const {
    return version_->series == nullptr ? nullptr : version_->series->rows();
  }
  // Computes answers (HeadAnswers::Compute) and counts them. REQUIRES: as head().
  absl::StatusOr<Answers> Answer(WantedAnswers wanted, const ExamplesView& rows,
                                 const void* computed, EngineScratch& scratch) const {
    const PredictionCounts* const counts =
        version_->series == nullptr ? nullptr : &version_->series->predictions();
    const bool asked = wanted.probabilities;
    const bool measured = counts != nullptr && (counts->IsDue() || asked) &&
                          head().head().link.kind != Link::Kind::kNone;
    wanted.probabilities |= measured;
    absl::StatusOr<Answers> answers = head().Compute(wanted, rows, computed, residual(), scratch);
    if (!answers.ok() || counts == nullptr) return answers;
    counts->Count(rows.rows(), answers->labels);
    if (!measured) return answers;
    counts->CountConfidence(std::as_const(answers->probabilities).view());
    if (!asked) answers->probabilities = Matrix<double>();
    return answers;
  }
  // Called when an alias names the version.
  void NoteAlias() const {
    if (version_->series != nullptr) version_->series->Promote();
  }
  // Counts of the version's requests.
  VersionTally& tally() const { return version_->tally; }
  int64_t memory_bytes() const { return version_->memory_bytes(); }
  // Samples the version's inputs; null if they are not sampled, as without features.
  const InputDrift* drift() const {
    return version_->series == nullptr || part() == LivePart::kAnswers ? nullptr
                                                                       : &version_->series->drift();
  }
  // Returns the engine. The version stays pinned while the result lives.
  std::shared_ptr<const Engine> pinned_engine() const {
    return std::shared_ptr<const Engine>(version_, version_->engine.get());
  }

 private:
  std::shared_ptr<const LiveVersion> version_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_VERSION_HANDLE_H_
