// Metrics of the test for drift, for each alias whose version is tested.
//
// Names come from clients, so the number of series must be bounded: the owner (DriftWatcher) tests
// at most kMaxTested aliases. Thread-safe.
#ifndef PHIMAP_SERVER_OBSERVE_DRIFT_METRICS_H_
#define PHIMAP_SERVER_OBSERVE_DRIFT_METRICS_H_

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/thread/mutex.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace phimap {

// The figures of one alias.
struct DriftFigures {
  // Evidence for drift, as a share of that at which the test alarms.
  double evidence = 0;
  // Unix time at which the evidence last reached 1; NaN if it never did.
  double crossed_seconds = std::numeric_limits<double>::quiet_NaN();
  // Size of the shift in deviations of F; NaN until enough rows were seen.
  double shift = std::numeric_limits<double>::quiet_NaN();
  // Share of the numbers of rows that are beyond the range of their column; NaN until rows were
  // seen, and if the version has no ranges.
  double beyond = std::numeric_limits<double>::quiet_NaN();
  // Rows tested and rows that were not finite, since the alias points to its version.
  double rows = 0;
  double rows_not_finite = 0;
};

class DriftMetrics {
 public:
  static constexpr int kMaxTested = 100;

  explicit DriftMetrics(prometheus::Registry& registry);
  DriftMetrics(const DriftMetrics&) = delete;
  DriftMetrics& operator=(const DriftMetrics&) = delete;

  // Shows the figures of the alias, which points to `version`. A figure that is NaN has no series.
  void Show(absl::string_view mapping, absl::string_view alias, int64_t version,
            const DriftFigures& figures);
  // Removes the alias's series.
  void Hide(absl::string_view mapping, absl::string_view alias);

  // Sampled rows that were dropped because the test could not keep up.
  prometheus::Counter* const dropped;

 private:
  static constexpr int kFigures = 6;
  using Key = std::pair<std::string, std::string>;
  struct Figure {
    prometheus::Family<prometheus::Gauge>* family;
    double DriftFigures::*value;
  };
  struct Shown {
    int64_t version = 0;
    std::array<prometheus::Gauge*, kFigures> gauges = {};
  };

  static std::array<Figure, kFigures> Families(prometheus::Registry& registry);
  void Remove(const Shown& shown) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::array<Figure, kFigures> figures_;
  Mutex mutex_;
  std::map<Key, Shown> shown_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_DRIFT_METRICS_H_
