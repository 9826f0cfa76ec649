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

  // The largest error at which a separator is accepted.
  double Threshold() const { return 0.5 - margin / 6; }
};

// Boosting on random separators. A separator classifies a row x by the sign of h·x, where h is
// uniform on the unit sphere. If `bias` is not 0, x stands for (x, bias); the papers have no bias.
//
// Weak learner (Blum 2005, Algorithm 1): separators are drawn until one has a weighted error of at
// most 1/2 − γ/6 on the rows, where γ = `margin`. (γ/6 is from the paper's footnote 2; its γ/4 is
// for the true error.) Suppose that some separator through the origin classifies the rows with
// margin γ. Then each draw succeeds with probability at least WeakLearnerSuccess
// (core/theory/weak_learner.h), for any weights of the rows. If none of `draws` draws succeeds, the
// draw with the smallest error is used, if that error is below 1/2. The summary then reports this.
//
// AdaBoost (Freund, Schapire 1997) combines `rounds` of these separators. In each round, the
// weights of the rows depend on the errors of the previous rounds. A separator with the weighted
// error ε votes with the weight ½ ln((1 − ε)/ε). If round t has the error ε_t, the share of
// misclassified rows is at most Π_t 2√(ε_t(1 − ε_t)). A separator without error ends the boosting,
// and is then the only one that votes. With one round, the learner is Algorithm 1 itself.
//
// Each class is learned against the rest. (With two classes, there is only one such problem.) The
// score of a class is the weight of the votes for it, minus the weight of the votes against it,
// divided by the weight of all votes. Scores are between −1 and 1.
//
// Cost: 2·n·p flops per drawn separator for n rows of p columns, in matrix products.
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
