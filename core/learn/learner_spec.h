// A learner and its parameters, with a text form; what is left out has the value shown:
//
//   perceptron(epochs=10, average=false, bias=1)
//   winnow(rate=0.1, threshold=0, epochs=10, bias=1)      Balanced Winnow
//   linear_svm(C=1, tolerance=0.01, bias=1)               liblinear, squared hinge
//   weak_learner(rounds=100, margin=0.1, draws=1000, bias=0)
//                                                         random separators, boosted
//   one_parameter(C=1, tolerance=0.01, epochs=1000)       one weight vector for all classes
//   kernel_sgd(strategy=gram, rate=0.1, epochs=20)        kernel logistic regression
//   kernel_svm(C=1, tolerance=0.001)                      libsvm
//
// The first five learn from features, the last two from raw rows and a kernel.
#ifndef PHIMAP_CORE_LEARN_LEARNER_SPEC_H_
#define PHIMAP_CORE_LEARN_LEARNER_SPEC_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

enum class LearnerKind {
  kPerceptron,
  kWinnow,
  kLinearSvm,
  kWeakLearner,
  kOneParameter,
  kKernelSgd,
  kKernelSvm
};

// How kernel SGD comes by its inner products; the four ways of the Cornell lecture, which end in
// the same model. With n rows, T steps, features that are D numbers and cost c_φ, and a kernel that
// costs c_K:
//
//   text               time             memory   keeps
//   features           T·c_φ + T·D      D        w, mapping each row when it is drawn
//   stored_features    n·c_φ + T·D      n·D      w and the features of every row
//   kernel             T·n·c_K          n        a coefficient a row, K(x_i, ·) when i is drawn
//   gram               n²·c_K + T·n     n²       a coefficient a row and the Gram matrix
//
// The first two need explicit features; with those of a mapping that approximates the kernel they
// are the lecture's two further ways.
enum class SgdStrategy { kFeatures, kStoredFeatures, kKernel, kGram };

// "perceptron" …
absl::string_view LearnerKindName(LearnerKind kind);
// "features" …
absl::string_view SgdStrategyName(SgdStrategy strategy);

struct LearnerSpec {
  LearnerKind kind = LearnerKind::kLinearSvm;
  // Weight of the examples' losses against the length of the separator: both SVMs and
  // kOneParameter.
  double C = 1;
  // When the solver stops, in its own terms: the gradient's length against that at 0 (kLinearSvm),
  // the largest violation of the optimality conditions (kOneParameter, kKernelSvm).
  double tolerance = 0.01;
  // Passes over the rows; for kOneParameter the most there may be.
  int64_t epochs = 10;
  // Step length: kWinnow, kKernelSgd.
  double rate = 0.1;
  // kWinnow: a class's score is how far its sum is over this.
  double threshold = 0;
  // kPerceptron: the mean of the weights after every row, not the last ones.
  bool average = false;
  // The value of a constant feature behind the others, which gives separators an intercept; 0: they
  // go through the origin. Learners from features, but kOneParameter.
  double bias = 1;
  // kWeakLearner: separators that are boosted (1: the weak learner alone), the margin γ that is
  // assumed, and how many separators are tried for one of error at most 1/2 − γ/6.
  int64_t rounds = 100;
  double margin = 0.1;
  int64_t draws = 1000;
  // kKernelSgd.
  SgdStrategy strategy = SgdStrategy::kGram;

  // The defaults of a kind, as they stand above.
  static LearnerSpec Of(LearnerKind kind);
  // Whether the learner has a parameter of this name.
  bool Has(absl::string_view parameter) const;
  // Whether it learns from raw rows and a kernel: kernel_sgd and kernel_svm.
  bool is_kernel_learner() const {
    return kind == LearnerKind::kKernelSgd || kind == LearnerKind::kKernelSvm;
  }
  // Whether it needs a map of raw rows to features: two strategies of kernel_sgd.
  bool needs_row_map() const {
    return kind == LearnerKind::kKernelSgd &&
           (strategy == SgdStrategy::kFeatures || strategy == SgdStrategy::kStoredFeatures);
  }

  // Parses the text form. INVALID_ARGUMENT (reason BAD_EXPRESSION) names the column, counted from
  // 1, what was expected there and what stands there. The result is validated.
  static absl::StatusOr<LearnerSpec> Parse(absl::string_view text);
  // Ranges of the kind's own parameters (INVALID_ARGUMENT, OUT_OF_RANGE); names the parameter as
  // field, without a prefix ("C").
  absl::Status Validate() const;
  // Canonical text with every parameter that applies; Parse(ToText()) gives an equal spec.
  std::string ToText() const;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_LEARNER_SPEC_H_
