// Split conformal prediction: sets of classes and intervals that hold the truth with a stated
// confidence (Vovk, Gammerman, Shafer, "Algorithmic learning in a random world", 2005; Lei, G'Sell,
// Rinaldo, Tibshirani, Wasserman, "Distribution-free predictive inference for regression", JASA
// 113, 2018).
//
// n calibration rows, on which nothing was fitted, have the nonconformity scores s_1 … s_n: 1 −
// p̂(y) for classes, |y − ŷ| for numbers. At confidence c the threshold is the k-th smallest of
// them, k = ⌈(n + 1)·c⌉; with k > n there is none, and the answer is every class or every number.
// A set holds the classes, or an interval the numbers, whose score is at most the threshold.
//
// Promise: where the calibration rows and the new row are exchangeable, the truth is in the answer
// with probability at least c, and, without ties, at most c + 1/(n + 1). Proof: the score of the
// new row is equally likely to be at each place among the n + 1 scores; it is over the threshold
// only at one of the n + 1 − k last places, and (n + 1 − k)/(n + 1) ≤ 1 − c. Ties leave it under
// the threshold more often. Without ties, the probability for given calibration rows is that of a
// law at its k-th smallest of n draws, which is distributed as Beta(k, n + 1 − k), whatever the
// law.
//
// The probability is over both the calibration rows and the new row, and is a mean over all rows:
// rows of a kind of their own may be covered less often. Thresholds of each class hold in each
// class.
//
// Scores must come from the head as it is served, folded or not: scores of another function are not
// exchangeable with those of the rows to come.
#ifndef PHIMAP_CORE_HEAD_CONFORMAL_H_
#define PHIMAP_CORE_HEAD_CONFORMAL_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Rows that a class needs for a threshold of its own.
inline constexpr int64_t kClassConditionalRows = 50;

struct CalibrationScores {
  // All scores in rising order. Finite and at least 0.
  std::vector<double> scores;
  // For classes: the class of each of `scores`. Empty for numbers.
  std::vector<int32_t> classes;
};

// Returns the scores of calibration rows; equal rows in any order give equal scores. Shapes:
// probabilities n×c, labels n; predicted n, targets n. REQUIRES: finite numbers, labels in 0 …
// c − 1.
CalibrationScores ScoresOfClasses(ConstMatrixView<double> probabilities,
                                  absl::Span<const int32_t> labels);
CalibrationScores ScoresOfNumbers(absl::Span<const double> predicted,
                                  absl::Span<const double> targets);

// Returns ⌈(rows + 1)·confidence⌉, the place of the threshold, from 1, among `rows` scores in
// rising order; over `rows` if there is no threshold. A confidence is what its shortest decimals
// say: 100·.55 is 55, although the product of the binary numbers is over it. REQUIRES: rows >= 0,
// 0 < confidence < 1.
int64_t ConformalRank(int64_t rows, double confidence);

// Immutable and thread-safe.
class ConformalPredictor {
 public:
  // `class_count` is 0 for numbers. REQUIRES: scores that rise; for classes, as many classes as
  // scores, each in 0 … class_count − 1.
  ConformalPredictor(CalibrationScores calibration, int32_t class_count);

  int64_t rows() const { return static_cast<int64_t>(scores_.size()); }
  // Whether every class has kClassConditionalRows rows, so that thresholds hold in each class.
  bool class_conditional() const { return class_conditional_; }
  // The threshold at a confidence, of all rows; nullopt if every answer belongs to it. REQUIRES:
  // 0 < confidence < 1.
  std::optional<double> Threshold(double confidence) const;
  // The threshold of each class: of its own rows if class_conditional(), and else of all rows.
  // Infinity stands for none.
  std::vector<double> ClassThresholds(double confidence) const;

 private:
  std::vector<double> scores_;
  // The scores of each class, rising.
  std::vector<std::vector<double>> by_class_;
  bool class_conditional_ = false;
};

// Appends to `set` the classes of a row, rising, whose nonconformity 1 − p is at most their
// threshold. The set may be empty. REQUIRES: as many thresholds as probabilities.
void ConformalSet(absl::Span<const double> probabilities, absl::Span<const double> thresholds,
                  std::vector<int32_t>& set);

}  // namespace phimap

#endif  // PHIMAP_CORE_HEAD_CONFORMAL_H_
