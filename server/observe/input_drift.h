// Metrics that show when a version is served inputs unlike those it was built from: the means of
// ‖F(x)‖² and, for F2, of the residual ρ(x), to be compared with the certificate's.
#ifndef PHIMAP_SERVER_OBSERVE_INPUT_DRIFT_H_
#define PHIMAP_SERVER_OBSERVE_INPUT_DRIFT_H_

#include <atomic>
#include <cstdint>

#include "core/plan/examples.h"
#include "core/plan/residual.h"
#include "core/plan/rows.h"
#include "prometheus/counter.h"

namespace phimap {

// Thread-safe. Outlived by its counters.
class InputDrift {
 public:
  // One request in so many gives the first of its rows: norm and residual of 2,048 columns take
  // some microseconds, and a call must not feel them.
  static constexpr uint32_t kEvery = 64;

  struct Counters {
    // Rows sampled, and over these the sums of ‖F(x)‖² and of ρ(x).
    prometheus::Counter* rows = nullptr;
    prometheus::Counter* norm_sum = nullptr;
    prometheus::Counter* residual_sum = nullptr;
  };
  explicit InputDrift(const Counters& counters) : counters_(counters) {}

  // Samples a computed request: `features` are the features of `rows`. `residual` is null unless
  // the mapping is F2.
  void Sample(const ExamplesView& rows, const RowsView& features, const Residual* residual) const {
    if (requests_.fetch_add(1, std::memory_order_relaxed) % kEvery != 0) return;
    Add(rows.Slice(0, 1), features.Slice(0, 1), residual);
  }

 private:
  void Add(const ExamplesView& row, const RowsView& features, const Residual* residual) const;

  const Counters counters_;
  mutable std::atomic<uint32_t> requests_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_INPUT_DRIFT_H_
