// What shows that a version is served inputs unlike those that it was built from: the mean of
// ‖F(x)‖², to be compared with the certificate's.
//
// Of an F2 it is the mean of K(x, x) − ρ(x): where inputs drift out of the landmarks' span it
// falls.
#ifndef PHIMAP_SERVER_OBSERVE_FEATURE_NORMS_H_
#define PHIMAP_SERVER_OBSERVE_FEATURE_NORMS_H_

#include <atomic>
#include <cstdint>

#include "core/plan/rows.h"
#include "prometheus/counter.h"

namespace phimap {

// Thread-safe. Outlived by its counters.
class FeatureNorms {
 public:
  // One request in so many gives the first of its rows, which at 2,048 features takes as long as
  // half of what is recorded of a request.
  static constexpr uint32_t kEvery = 16;

  FeatureNorms(prometheus::Counter* rows, prometheus::Counter* sum) : rows_(rows), sum_(sum) {}

  // A request was computed; its features begin at `features`, `columns` to a row.
  void Sample(const void* features, FloatType type, int64_t columns) const;

 private:
  prometheus::Counter* const rows_;
  prometheus::Counter* const sum_;
  mutable std::atomic<uint32_t> requests_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_FEATURE_NORMS_H_
