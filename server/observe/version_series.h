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

#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/registry.h"
#include "server/observe/input_drift.h"
#include "server/sync/mutex.h"

namespace phimap {

class VersionSeries {
 public:
  static constexpr int kMaxNamed = 100;
  static constexpr int kMaxAliased = 100;

  // All counters that have the same labels.
  struct Series {
    prometheus::Counter* rows = nullptr;
    InputDrift::Counters drift;
  };

  // The series of a pair of labels, and the sampler that counts in them.
  struct Labelled {
    explicit Labelled(const Series& counters) : series(counters), drift(counters.drift) {}
    const Series series;
    const InputDrift drift;
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
    // Called when an alias names the version: gives it labels of its own, unless it has them or
    // there are kMaxNamed + kMaxAliased. What it counted before stays with "_other".
    void Promote() const;

   private:
    friend class VersionSeries;
    using Key = std::pair<std::string, int64_t>;
    Lease(VersionSeries& owner, Key key, const Labelled* labelled)
        : owner_(owner), key_(std::move(key)), labelled_(labelled) {}
    const Labelled* now() const { return labelled_.load(std::memory_order_acquire); }

    VersionSeries& owner_;
    const Key key_;
    // The version's own, or those of "_other". Changes at most once, from the latter to the former.
    mutable std::atomic<const Labelled*> labelled_;
  };

  // Registers the metric families. `registry` must outlive this object.
  explicit VersionSeries(prometheus::Registry& registry);
  VersionSeries(const VersionSeries&) = delete;
  VersionSeries& operator=(const VersionSeries&) = delete;

  std::unique_ptr<const Lease> Open(const std::string& mapping, int64_t version);

 private:
  void Close(const Lease& lease);
  void Promote(const Lease& lease);
  // Returns the series of the key, with one more lease, or null if `limit` others have series.
  const Labelled* Take(const Lease::Key& key, size_t limit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Series Add(const prometheus::Labels& labels);

  prometheus::Family<prometheus::Counter>& rows_;
  prometheus::Family<prometheus::Counter>& drift_rows_;
  prometheus::Family<prometheus::Counter>& norm_sum_;
  prometheus::Family<prometheus::Counter>& residual_sum_;
  prometheus::Family<prometheus::Counter>& rows_not_finite_;
  const Labelled other_;
  Mutex mutex_;
  std::map<Lease::Key, std::unique_ptr<Labelled>> named_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_VERSION_SERIES_H_
