// Metrics that show when the served inputs differ from the inputs that a version was built from.
// They are the mean of ‖F(x)‖² and, for F2, the mean of the residual ρ(x), over a sample of the
// served rows x. They are to be compared with the certificate's.
#ifndef PHIMAP_SERVER_OBSERVE_INPUT_DRIFT_H_
#define PHIMAP_SERVER_OBSERVE_INPUT_DRIFT_H_

#include <atomic>
#include <cstdint>

#include "core/plan/examples.h"
#include "core/plan/residual.h"
#include "core/plan/rows.h"
#include "prometheus/counter.h"

namespace phimap {

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

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_INPUT_DRIFT_H_
