// The series that have a version's name as labels.
//
// Names come from clients, so the number of series must be bounded. At most kMaxNamed live versions
// have labels of their own. Further versions share one series, whose labels for mapping and version
// are "_other", a name that no mapping can have. A version keeps its labels while it is live, so a
// client that has thousands of versions loaded cannot displace the labels of others.
// Thread-safety: Open, the destructor of a lease and its counters may be used from any thread.
#ifndef PHIMAP_SERVER_OBSERVE_VERSION_SERIES_H_
#define PHIMAP_SERVER_OBSERVE_VERSION_SERIES_H_

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

  // All counters that have the same labels.
  struct Series {
    prometheus::Counter* rows = nullptr;
    InputDrift::Counters drift;
  };

  // The series of one version while it is live. The series are removed with the version's last
  // lease. A lease must not outlive its VersionSeries.
  class Lease {
   public:
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    // Counts the rows that the version mapped.
    prometheus::Counter* rows() const { return series_.rows; }
    // The object that samples the version's inputs, to show when they drift.
    const InputDrift& drift() const { return drift_; }

   private:
    friend class VersionSeries;
    using Key = std::pair<std::string, int64_t>;
    Lease(VersionSeries* owner, Key key, const Series& series)
        : owner_(owner), key_(std::move(key)), series_(series), drift_(series.drift) {}

    VersionSeries* const owner_;  // null if it shares "_other"
    const Key key_;
    const Series series_;
    const InputDrift drift_;
  };

  // Registers the metric families. `registry` must outlive this object.
  explicit VersionSeries(prometheus::Registry& registry);
  VersionSeries(const VersionSeries&) = delete;
  VersionSeries& operator=(const VersionSeries&) = delete;

  std::unique_ptr<const Lease> Open(const std::string& mapping, int64_t version);

 private:
  struct Named {
    Series series;
    int leases = 0;
  };

  void Close(const Lease::Key& key);

  Series Add(const prometheus::Labels& labels);

  prometheus::Family<prometheus::Counter>& rows_;
  prometheus::Family<prometheus::Counter>& drift_rows_;
  prometheus::Family<prometheus::Counter>& norm_sum_;
  prometheus::Family<prometheus::Counter>& residual_sum_;
  const Series other_;
  Mutex mutex_;
  std::map<Lease::Key, Named> named_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_VERSION_SERIES_H_
