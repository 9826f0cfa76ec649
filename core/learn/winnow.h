// Balanced Winnow: multiplicative updates on two copies of each feature.
#ifndef PHIMAP_CORE_LEARN_WINNOW_H_
#define PHIMAP_CORE_LEARN_WINNOW_H_

#include <memory>

#include "core/learn/learner.h"

namespace phimap {

struct WinnowOptions {
  double rate = 0.1;
  double threshold = 0;
  int64_t epochs = 10;
  double bias = 1;
};

// For each class against the rest, with labels y = ±1: positive weights u⁺ and u⁻ begin at 1. Rows
// are looked at in passes, each in an order of its own (RowOrder), at most `epochs`. A row is a
// mistake where y·(Σ (u⁺_k − u⁻_k)·x_k − threshold) <= 0, and then u⁺_k ← u⁺_k·exp(rate·y·x_k) and
// u⁻_k ← u⁻_k·exp(−rate·y·x_k). Training ends early after a pass without a mistake. Two classes are
// one such problem. The scores are the sums less the threshold.
//
// x is the row with each column divided by its largest magnitude among the rows learned from, and,
// unless bias is 0, a last column of 1: exponents mean nothing without a scale. The resulting model
// is linear in the given rows.
//
// Since u⁺·u⁻ stays 1, the difference of the weights is 2·sinh(z), z_k = rate·Σ y·x_k over the
// mistakes; z is kept within ±300, where e^300 is 1e130.
//
// Source: Littlestone 1988 (Winnow, exponents of 0 and ±1), and its balanced form as Balcan, Blum,
// Vempala 2006 use it in section 6; the theory for real x is that of EG±, Kivinen, Warmuth 1997.
// Cost:   epochs · n·L·p multiplications, and p exponentials a mistake.
class Winnow : public Learner {
 public:
  explicit Winnow(const WinnowOptions& options) : options_(options) {}
  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  const WinnowOptions options_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_WINNOW_H_
