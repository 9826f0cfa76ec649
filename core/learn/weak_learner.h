// Random separators, and boosting on them.
#ifndef PHIMAP_CORE_LEARN_WEAK_LEARNER_H_
#define PHIMAP_CORE_LEARN_WEAK_LEARNER_H_

#include <memory>

#include "core/learn/learner.h"

namespace phimap {

struct WeakLearnerOptions {
  int64_t rounds = 100;
  double margin = 0.1;
  int64_t draws = 1000;
  double bias = 0;

  // The error at which a separator will do.
  double Threshold() const { return 0.5 - margin / 6; }
};

// Blum 2005, Algorithm 1: draw a separator h·x >= 0 with h uniform on the unit sphere until its
// error on the rows is at most 1/2 − γ/6 (the paper's footnote 2: γ/4 is for the true error). Rows
// that a separator through the origin classifies with margin γ let a draw succeed with probability
// of at least WeakLearnerSuccess (core/theory/weak_learner.h), however they are weighted. If none
// of `draws` does, the best of them is used if its error is under 1/2, and the summary says so.
//
// `rounds` of it are boosted by AdaBoost (Freund, Schapire 1997): each round weights the rows by
// how the rounds before did on them, and votes with ½ ln((1 − ε)/ε), ε its weighted error. With
// errors ε_t a share of at most Π 2√(ε_t(1 − ε_t)) of the rows is misclassified. A separator
// without error ends it, and votes alone. One round is Algorithm 1 by itself.
//
// Each class against the rest; two classes are one such problem. The scores are votes for less
// votes against, over all votes: −1 to 1. x stands for (x, bias) unless bias is 0, as in the paper.
//
// Cost: 2·n·p flops a separator drawn, in products.
class WeakLearner : public Learner {
 public:
  explicit WeakLearner(const WeakLearnerOptions& options) : options_(options) {}
  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  const WeakLearnerOptions options_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_WEAK_LEARNER_H_
