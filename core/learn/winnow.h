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

// Balanced Winnow. For each class, weights are trained to separate the class from all others, with
// labels y = ±1. (With two classes, there is only one such problem.)
//
// Inputs: x stands for the row with each column divided by the column's largest magnitude in the
// training rows. The exponents below depend on the scale, so this division is necessary. Unless
// `bias` is 0, a last column of 1 is appended. The resulting model is linear in the unscaled rows.
//
// Training: each feature k has two positive weights, u⁺_k and u⁻_k, which begin at 1. Training
// makes at most `epochs` passes over the rows, each in a new random order (RowOrder). The score of
// a row is Σ (u⁺_k − u⁻_k)·x_k − threshold. A row is a mistake if y times its score is at most 0.
// Each mistake multiplies u⁺_k by exp(rate·y·x_k) and u⁻_k by exp(−rate·y·x_k), for all k. Training
// ends early after a pass without a mistake.
//
// Range: the product u⁺_k·u⁻_k stays 1. So the difference u⁺_k − u⁻_k is 2·sinh(z_k), where z_k is
// the sum of rate·y·x_k over the mistakes. z_k is kept within ±300, so no weight exceeds e^300,
// about 1e130.
//
// Source: Littlestone 1988 (Winnow, exponents of 0 and ±1). The balanced form is that of Balcan,
//         Blum, Vempala 2006, section 6. The theory for real x is that of EG±, Kivinen, Warmuth
//         1997.
// Cost:   epochs · n·L·p multiplications for n rows, L classes and p columns, and p exponentials
//         per mistake.
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
