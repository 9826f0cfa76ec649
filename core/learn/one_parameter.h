// One weight vector for all classes, on features that are a block a class.
#ifndef PHIMAP_CORE_LEARN_ONE_PARAMETER_H_
#define PHIMAP_CORE_LEARN_ONE_PARAMETER_H_

#include <memory>

#include "core/learn/learner.h"

namespace phimap {

struct OneParameterOptions {
  double C = 1;
  double tolerance = 0.01;
  int64_t epochs = 1000;
};

// Shi, Shen, Hill, van den Hengel 2012, Theorem 9: features are (R_1 x, …, R_L x), as the mapping
// `multiclass` makes them, and v scores class y by ⟨v, R_y x⟩. The v that is learned is the minimum
// of
//
//   ½‖v‖² + C Σ_i Σ_{y ≠ y_i} max(0, 1 − ⟨v, R_{y_i} x_i − R_y x_i⟩)²,
//
// the support vector machine of the differences whose cosines with v the theorem bounds. Dual
// coordinate descent (Hsieh and others 2008), rows in an order of its own each pass (RowOrder),
// until the largest projected gradient of a pass is at most `tolerance`, or for `epochs` passes.
//
// Errors: INVALID_ARGUMENT (COLUMNS_MISMATCH) when columns are not L blocks of equal length.
// Memory: 8 bytes a row and class.
// Cost:   2·n·p flops a pass.
class OneParameter : public Learner {
 public:
  explicit OneParameter(const OneParameterOptions& options) : options_(options) {}
  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  const OneParameterOptions options_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_ONE_PARAMETER_H_
