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

// All weights begin at 0. Passes over the rows, each in an order of its own (RowOrder), at most
// `epochs`. If the score of the row's class does not exceed every other one, the row is added to
// the weights of its class and subtracted from those of its rival, the first of the other classes
// with the highest score; x stands for (x, bias) throughout. Training ends early after a pass
// without a change: then the rows are separated.
//
// Two classes: the rule of Rosenblatt, w ← w + yx where y·w·x <= 0 for labels y = ±1, with w =
// (w_1 − w_0)/2. Rows of ‖x‖ <= R that some unit w separates with y·w·x >= γ change it at most
// (R/γ)² times (Novikoff 1962). More classes: Kesler's construction (Duda, Hart 1973; the
// ultraconservative family of Crammer, Singer 2003), at most 2(R/γ)² times with γ the lead over
// every rival and the weights of all classes of length 1 together.
//
// With `average` the model is the mean of the weights after each row (Freund, Schapire 1999).
// Cost: epochs · n·L·p multiplications, no matrix products: a row's scores depend on the row
// before.
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
