// A learner with one weight vector for all classes. The features consist of one block per class.
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

// A learner with a single weight vector v for all classes. Its input is the output of the mapping
// `multiclass`: for each row x, the features (R_1 x, …, R_L x), where L is the number of classes
// and R_y is the random matrix of class y. The score of class y is ⟨v, R_y x⟩ (Shi, Shen, Hill, van
// den Hengel 2012, Theorem 9). Let y_i be the class of row x_i. Training finds the v that minimises
//
//   ½‖v‖² + C Σ_i Σ_{y ≠ y_i} max(0, 1 − ⟨v, R_{y_i} x_i − R_y x_i⟩)².
//
// This is a support vector machine on the differences R_{y_i} x_i − R_y x_i. The theorem bounds the
// cosines of these differences with v.
//
// Training is dual coordinate descent (Hsieh and others 2008). Each pass visits the rows in a new
// random order (RowOrder). Training ends when the largest projected gradient of a pass is at most
// `tolerance`, or after `epochs` passes.
//
// Errors: INVALID_ARGUMENT (COLUMNS_MISMATCH) unless the columns form L blocks of equal length.
// Memory: 8 bytes per pair of row and class.
// Cost:   2·n·p flops per pass over n rows of p columns.
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
