// The series that have a version's name as labels.
//
// Names come from clients, so the number of series must be bounded. At most kMaxNamed live versions
// have labels of their own. Further versions share one series, whose labels for mapping and version
// are "_other", a name that no mapping can have. A version keeps its labels while it is live, so a
// client that has thousands of versions loaded cannot displace the labels of others. Versions that
// aliases name come first: another kMaxAliased labels are reserved for them, which a version gets
// by Promote, from then on. Thread-safety: Open, the destructor of a lease and its counters may be
// used from any thread.
#ifndef PHIMAP_SERVER_OBSERVE_VERSION_SERIES_H_
#define PHIMAP_SERVER_OBSERVE_VERSION_SERIES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/head/head.h"
#include "core/linalg/matrix.h"
#include "core/plan/examples.h"
#include "core/plan/residual.h"
#include "core/plan/rows.h"
#include "core/thread/mutex.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/registry.h"

namespace phimap {

// Counts of a version while it is in memory. Clients request them by an RPC. (/metrics has labels
// for only a limited number of versions.)
//
// A number of events and their total duration. Thread-safe and lock-free. Count and time are each
// exact, but may be read at different instants.
class TimeTally {
 public:
  void Add(absl::Duration time) {
    count_.fetch_add(1, std::memory_order_relaxed);
    nanoseconds_.fetch_add(absl::ToInt64Nanoseconds(time), std::memory_order_relaxed);
  }
  int64_t count() const { return count_.load(std::memory_order_relaxed); }
  absl::Duration total() const {
    return absl::Nanoseconds(nanoseconds_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<int64_t> count_{0};
  std::atomic<int64_t> nanoseconds_{0};
};

// Thread-safe and lock-free. Times are on the clock of SteadyNow.
class VersionTally {
 public:
  // Records that a request ended at `now`. `batch_began` is InfinitePast if the request got into no
  // batch.
  void RequestEnded(bool ok, int64_t rows, absl::Time received, absl::Time batch_began,
                    absl::Time now) {
    (ok ? answered_ : failed_).Add(now - received);
    last_request_.store(absl::ToUnixNanos(now), std::memory_order_relaxed);
    if (!ok || batch_began == absl::InfinitePast()) return;
    rows_.fetch_add(rows, std::memory_order_relaxed);
    queued_.Add(batch_began - received);
    computed_.Add(now - batch_began);
  }
  // Records that the engine ran once, for one or more requests.
  void BatchComputed() { batches_.fetch_add(1, std::memory_order_relaxed); }

  const TimeTally& answered() const { return answered_; }
  const TimeTally& failed() const { return failed_; }
  // Time from arrival to the start of the batch, and from there to the features.
  const TimeTally& queued() const { return queued_; }
  const TimeTally& computed() const { return computed_; }
  int64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  int64_t batches() const { return batches_.load(std::memory_order_relaxed); }
  // Time at which the last request ended; InfinitePast if there was none.
  absl::Time last_request() const {
    const int64_t nanoseconds = last_request_.load(std::memory_order_relaxed);
    return nanoseconds == 0 ? absl::InfinitePast() : absl::FromUnixNanos(nanoseconds);
  }

 private:
  TimeTally answered_;
  TimeTally failed_;
  TimeTally queued_;
  TimeTally computed_;
  std::atomic<int64_t> rows_{0};
  std::atomic<int64_t> batches_{0};
  std::atomic<int64_t> last_request_{0};
};

// Metrics that show when the served inputs differ from the inputs that a version was built from.
// They are the mean of ‖F(x)‖² and, for F2, the mean of the residual ρ(x), over a sample of the
// served rows x. They are to be compared with the certificate's.
//
// Thread-safe. The counters must outlive this object.
class InputDrift {
 public:
  // One request in kEvery contributes its first row. For 2,048 columns, norm and residual take some
  // microseconds, which calls must not notice.
  static constexpr uint32_t kEvery = 64;

  struct Counters {
    // `rows` is the number of sampled rows x. `norm_sum` and `residual_sum` are the sums of ‖F(x)‖²
    // and of the residual ρ(x) over these rows.
    prometheus::Counter* rows = nullptr;
    prometheus::Counter* norm_sum = nullptr;
    prometheus::Counter* residual_sum = nullptr;
    // Sampled rows whose norm or residual is not finite. They are in no sum, because one of them
    // would make the sum useless for good.
    prometheus::Counter* rows_not_finite = nullptr;
  };
  explicit InputDrift(const Counters& counters) : counters_(counters) {}

  // Counts a computed request, whose `features` are those of `rows`. `residual` is null unless the
  // version is F2.
  void Sample(const ExamplesView& rows, const RowsView& features, const Residual* residual) const {
    if (requests_.fetch_add(1, std::memory_order_relaxed) % kEvery != 0) return;
    Add(rows.Slice(0, 1), features.Slice(0, 1), residual);
  }

 private:
  void Add(const ExamplesView& row, const RowsView& features, const Residual* residual) const;

  const Counters counters_;
  mutable std::atomic<uint32_t> requests_{0};
};

// Counts the answers of a version's head, so that a dashboard shows a model that has begun to
// answer one class only, or is no longer sure.
//
// Thread-safe. The counters must outlive this object.
class PredictionCounts {
 public:
  // At most this many classes have series of their own, in the order of the head; the others share
  // one, of the class "_other". Numbers count there too.
  static constexpr size_t kMaxClasses = 20;
  // The confidence of one request in kEvery is measured, because it needs probabilities.
  static constexpr uint32_t kEvery = 64;

  struct Counters {
    // The classes of the head, as far as they have series, and "_other".
    std::vector<prometheus::Counter*> answers;
    // Rows whose confidence was measured, and the sum of it: the largest probability of each.
    prometheus::Counter* confidence_rows = nullptr;
    prometheus::Counter* confidence_sum = nullptr;
  };
  explicit PredictionCounts(Counters counters) : counters_(std::move(counters)) {}

  // Whether the confidence of this request is to be measured.
  bool IsDue() const { return requests_.fetch_add(1, std::memory_order_relaxed) % kEvery == 0; }
  // `labels` are empty for numbers.
  void Count(int64_t rows, absl::Span<const int32_t> labels) const;
  void CountConfidence(ConstMatrixView<double> probabilities) const;

 private:
  friend class VersionSeries;
  const Counters counters_;
  mutable std::atomic<uint32_t> requests_{0};
};

class VersionSeries {
 public:
  static constexpr int kMaxNamed = 100;
  static constexpr int kMaxAliased = 100;

  // All counters that have the same labels.
  struct Series {
    prometheus::Counter* rows = nullptr;
    InputDrift::Counters drift;
    // Empty for a version without a head.
    PredictionCounts::Counters predictions;
  };

  // The series of a pair of labels, and the sampler that counts in them.
  struct Labelled {
    explicit Labelled(const Series& counters)
        : series(counters), drift(counters.drift), predictions(counters.predictions) {}
    const Series series;
    const InputDrift drift;
    const PredictionCounts predictions;
    int leases = 0;
  };

  // The series of one version while it is live. The series are removed with the version's last
  // lease. A lease must not outlive its VersionSeries.
  class Lease {
   public:
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    // Counts the rows that the version mapped.
    prometheus::Counter* rows() const { return now()->series.rows; }
    // The object that samples the version's inputs, to show when they drift.
    const InputDrift& drift() const { return now()->drift; }
    // Counts the answers of the version's head. REQUIRES: it has one.
    const PredictionCounts& predictions() const { return now()->predictions; }
    // Called when an alias names the version: gives it labels of its own, unless it has them or
    // there are kMaxNamed + kMaxAliased. What it counted before stays with "_other".
    void Promote() const;

   private:
    friend class VersionSeries;
    using Key = std::pair<std::string, int64_t>;
    Lease(VersionSeries& owner, Key key, std::shared_ptr<const HeadFacts> head)
        : owner_(owner), key_(std::move(key)), head_(std::move(head)) {}
    const Labelled* now() const { return labelled_.load(std::memory_order_acquire); }

    VersionSeries& owner_;
    const Key key_;
    const std::shared_ptr<const HeadFacts> head_;
    // The version's own, or those of "_other". Changes at most once, from the latter to the former.
    mutable std::atomic<const Labelled*> labelled_{nullptr};
  };

  // Registers the metric families. `registry` must outlive this object.
  explicit VersionSeries(prometheus::Registry& registry);
  VersionSeries(const VersionSeries&) = delete;
  VersionSeries& operator=(const VersionSeries&) = delete;

  // `head` is null for a version without one.
  std::unique_ptr<const Lease> Open(const std::string& mapping, int64_t version,
                                    std::shared_ptr<const HeadFacts> head = nullptr);

 private:
  void Close(const Lease& lease);
  void Promote(const Lease& lease);
  // Returns the series of the key, with one more lease, or null if `limit` others have series.
  const Labelled* Take(const Lease& lease, size_t limit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // `classes` is null for a version without a head.
  Series Add(const prometheus::Labels& labels, const std::vector<std::string>* classes);

  prometheus::Family<prometheus::Counter>& rows_;
  prometheus::Family<prometheus::Counter>& drift_rows_;
  prometheus::Family<prometheus::Counter>& norm_sum_;
  prometheus::Family<prometheus::Counter>& residual_sum_;
  prometheus::Family<prometheus::Counter>& rows_not_finite_;
  prometheus::Family<prometheus::Counter>& predictions_;
  prometheus::Family<prometheus::Counter>& confidence_rows_;
  prometheus::Family<prometheus::Counter>& confidence_sum_;
  const Labelled other_;
  Mutex mutex_;
  std::map<Lease::Key, std::unique_ptr<Labelled>> named_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_VERSION_SERIES_H_
