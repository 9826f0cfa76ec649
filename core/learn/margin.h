// Margins measure how far rows lie on the right side of a separator. This file computes margins,
// their distribution, and certified statements about that distribution.
//
// Scores: a row x has the scores s_k = ⟨w_k, x⟩ + b_k, with weight vectors w_k and intercepts b_k.
// With two classes there is one score s, which is positive for class 1. With more classes there is
// one score for each class.
//
// Margin of a row of class y:
//
//   two classes    y·s/(‖w‖·‖x‖), y = ±1           Balcan, Blum, Vempala 2006, section 2; Blum
//                                                  2005, Definition 1; Shi et al. 2012, Definition
//                                                  2
//   more classes   s_y/(‖w_y‖·‖x‖) − max_{k ≠ y} s_k/(‖w_k‖·‖x‖)
//                                                  Shi et al. 2012, Definition 7
//   unnormalised   the same without ‖x‖            Shi et al. 2012, Definition 1
//
// Intercepts: an intercept b is treated as the weight of a constant feature B, because ⟨(w, b/B),
// (x, B)⟩ = ⟨w, x⟩ + b. In the formulas above, w then stands for (w, b/B), and ‖x‖² for ‖x‖² + B².
// The margin is that of the kernel K + B².
//
// Margins in the kernel's own space: ‖φ(x)‖² is K(x, x). Suppose that w·F(x) = ⟨w', φ(x)⟩ for a
// vector w' with ‖w'‖ = ‖w‖. Then the margin in φ-space is the margin above with K(x, x) in place
// of ‖x‖². F2 has such a w': the features of F2 are coordinates in an orthonormal basis of the
// landmarks' span, and w' has the coordinates w in this basis.
//
// Margins that allow for errors: a distribution has the margin γ at error α if P[margin < γ] ≤ α
// (Balcan, Blum, Vempala 2006, section 2; Blum 2005, Definition 2; Shi et al. 2012, Definition 3).
// For given labeled rows, the largest such γ is an order statistic (MarginOfRows). For the
// distribution from which rows are drawn, see MarginOfDistribution.
#ifndef PHIMAP_CORE_LEARN_MARGIN_H_
#define PHIMAP_CORE_LEARN_MARGIN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace phimap {

// Properties of the weight vectors from which margins are computed: one vector for two classes,
// otherwise one per class.
struct Separators {
  // Lengths ‖w_k‖ of the weight vectors. A length is 0 if the learner learned nothing about the
  // class.
  std::vector<double> norms;
  // b_k. Empty if the model has no intercepts.
  std::vector<double> intercepts;
  // The constant feature B > 0. Unused without intercepts.
  double intercept_scale = 1;
};

// Returns the margin of a row of class `label`. `squared_length` is the row's squared length: ‖x‖²,
// or K(x, x). Up to rounding, the margin is in [−1, 1] for two classes and in [−2, 2] for more.
//
// The margin is 0 for a row of length 0. With two classes, it is also 0 if the weight vector has
// length 0. With more classes, a weight vector of length 0 has no cosine, and the worst possible
// cosine is assumed: −1 for the row's own class and 1 for another class. So any other vector for
// that class gives at least this margin.
//
// REQUIRES: as many scores as vectors; 0 <= label < max(2, vectors).
double NormalisedMargin(const Separators& separators, absl::Span<const double> scores,
                        double squared_length, int label);
// Returns the unnormalised margin of a row: its scores are divided by ‖w_k‖, but not by the row's
// length.
double UnnormalisedMargin(const Separators& separators, absl::Span<const double> scores, int label);

// Returns a lower bound on the margin of a row x if its score with vector w_k has an error of at
// most rounding·‖w_k‖·‖x‖. Scores have such errors if, for example, the features of F2 are in
// float32. What may be lost is rounding·‖x‖/√(‖x‖² + B²), twice with more than two classes: the
// constant feature B has no error. The bound is at least the least margin that exists, −1 for two
// classes and −2 for more. Without this limit, a row whose features may have lost all their digits
// would have a margin that no row can have.
//
// REQUIRES: as NormalisedMargin; rounding >= 0, which may be infinite.
double CertainMargin(const Separators& separators, absl::Span<const double> scores,
                     double squared_length, double rounding, int label);

// Returns the quantiles at 0, 0.01 … 1 of numbers in ascending order. The quantile at q > 0 is the
// ⌈q·n⌉-th smallest number; the quantile at 0 is the smallest number. Returns an empty list if
// there are no numbers.
std::vector<double> Percentiles(absl::Span<const double> rising);

// Returns the margin of the rows at error α: the largest γ such that at most ⌊α·n⌋ of the n margins
// are less than γ. REQUIRES: margins in ascending order, at least one; 0 <= alpha < 1.
double MarginOfRows(absl::Span<const double> rising, double alpha);

// Computes a bound for the distribution of margins: a γ with P[margin < γ] ≤ α. `rising` has the
// margins of n rows that were drawn independently from the distribution and not used in training.
// For every distribution, the statement P[margin < γ] ≤ α is true with probability at least 1 −
// doubt over the draw of the rows. Returns nullopt if no such statement is possible. This is always
// the case for α = 0.
//
// Method: γ is the k-th smallest margin, for the largest k with P[Bin(n, α) < k] ≤ doubt
// (ConfidentRank in core/theory/binomial.h).
//
// Proof: let q be the largest number with P[margin < q] ≤ α. Then P[margin ≤ q] ≥ α. The statement
// is false only if γ > q. This means that fewer than k rows have a margin of at most q, which has a
// probability of at most P[Bin(n, α) < k].
//
// For small α, an order statistic is sharper than the band of Dvoretzky, Kiefer and Wolfowitz. For
// example, with 1,000 rows, α = 0.05 and doubt = 0.05, γ is the 39th smallest margin; the band
// would give the 12th. But the order statistic is a statement about a single α, so a caller that
// uses several α must divide the doubt among them.
//
// REQUIRES: margins in ascending order; 0 <= alpha < 1; 0 < doubt < 1.
std::optional<double> MarginOfDistribution(absl::Span<const double> rising, double alpha,
                                           double doubt);

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_MARGIN_H_
