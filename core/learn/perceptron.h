// The perceptron, for any number of classes.
#ifndef PHIMAP_CORE_LEARN_PERCEPTRON_H_
#define PHIMAP_CORE_LEARN_PERCEPTRON_H_

#include <memory>

#include "core/learn/learner.h"

namespace phimap {

struct PerceptronOptions {
  int64_t epochs = 10;
  bool average = false;
  double bias = 1;
};

// The perceptron. Throughout, x stands for the row with `bias` appended. All weights begin at 0.
// Training makes at most `epochs` passes over the rows, each in a new random order (RowOrder).
//
// One step: the rival of a row's class is the other class with the highest score, or the first of
// several such classes. If the score of the row's class does not exceed the rival's score, x is
// added to the weights of the row's class and subtracted from the weights of the rival. Training
// ends early after a pass without a change, because the rows are then separated.
//
// Two classes: this is Rosenblatt's rule. With labels y = ±1 and w = (w_1 − w_0)/2, it changes w to
// w + yx if y·w·x <= 0. Suppose that ‖x‖ <= R for all rows, and that some unit vector w separates
// them with y·w·x >= γ. Then there are at most (R/γ)² changes (Novikoff 1962).
//
// More classes: this is Kesler's construction (Duda, Hart 1973; the ultraconservative family of
// Crammer, Singer 2003). There are at most 2(R/γ)² changes. Here γ is defined by weights whose
// length over all classes together is 1: it is the least amount by which the score of a row's own
// class exceeds the score of a rival.
//
// If `average`, the model is the mean of the weights after each row (Freund, Schapire 1999).
//
// Cost: epochs · n·L·p multiplications for n rows, L classes and p columns. They cannot be combined
//       into matrix products, because a row's scores depend on the row before it.
class Perceptron : public Learner {
 public:
  explicit Perceptron(const PerceptronOptions& options) : options_(options) {}
  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  const PerceptronOptions options_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_PERCEPTRON_H_
