// Margins: how far rows lie on the right side of a separator, the distribution of these distances,
// and certified statements about it.
//
// A row x with the class y has scores s_k = ⟨w_k, x⟩ + b_k: one of two classes, positive for class
// 1; one for each class of more. Its margin is
//
//   two classes    y·s/(‖w‖·‖x‖), y = ±1           Balcan, Blum, Vempala 2006, section 2; Blum
//                                                  2005, Definition 1; Shi et al. 2012, Definition
//                                                  2
//   more           s_y/(‖w_y‖·‖x‖) − max over the others of s_k/(‖w_k‖·‖x‖)
//                                                  Shi et al. 2012, Definition 7
//   unnormalised   the same without ‖x‖            Shi et al. 2012, Definition 1
//
// An intercept is a feature of the constant B: ⟨(w, b/B), (x, B)⟩ = ⟨w, x⟩ + b. So w above is (w,
// b/B) and ‖x‖² is ‖x‖² + B², and the margin is that of the kernel K + B². In the kernel's own
// space ‖φ(x)‖² = K(x, x), and where w·F(x) = ⟨w', φ(x)⟩ with ‖w'‖ = ‖w‖, as for F2, whose w' is
// w's combination of an orthonormal basis of the landmarks' span, the margin there is the same with
// K(x, x) in the place of ‖x‖².
//
// Error-allowed (BBV section 2; Blum 2005, Definition 2; SH Definition 3): a distribution has the
// margin γ at error α when P[margin < γ] ≤ α. For labeled rows this is an order statistic; for the
// distribution that they are drawn from, MarginOfDistribution.
#ifndef PHIMAP_CORE_LEARN_MARGIN_H_
#define PHIMAP_CORE_LEARN_MARGIN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace phimap {

// What margins need of the vectors that scores are computed with: one vector for two classes,
// otherwise one per class.
struct Separators {
  // ‖w_k‖. It is 0 if the learner learned nothing about the class.
  std::vector<double> norms;
  // b_k. Empty if the model has no intercepts.
  std::vector<double> intercepts;
  // B > 0. Unused without intercepts.
  double intercept_scale = 1;
};

// The margin of a row of the squared length `squared_length` (‖x‖², or K(x, x)), in [−1, 1] for two
// classes and [−2, 2] for more, up to rounding. A row of length 0, and a vector of length 0 of two
// classes, have the margin 0. With more classes the cosine of a vector of length 0 is taken at its
// worst, −1 for the row's own class and 1 for another: any other vector of the class gives at least
// this margin. REQUIRES: as many scores as vectors; 0 <= label < max(2, vectors).
double NormalisedMargin(const Separators& separators, absl::Span<const double> scores,
                        double squared_length, int label);
// Margin of scores with unit vectors w_k; not divided by the row's length.
double UnnormalisedMargin(const Separators& separators, absl::Span<const double> scores, int label);

// Largest error of a margin when each score has an error of at most rounding·‖w_k‖·‖x‖, as the
// features of F2 in float32 have.
inline double MarginAllowance(const Separators& separators, double rounding) {
  return separators.norms.size() == 1 ? rounding : 2 * rounding;
}

// The quantiles at 0, 0.01 … 1 of rising numbers: at q the ⌈q·n⌉-th smallest, the smallest at 0.
// Empty without numbers.
std::vector<double> Percentiles(absl::Span<const double> rising);

// The margin of the rows at error α: the largest γ such that at most ⌊α·n⌋ of these margins are
// less. REQUIRES: margins rise, at least one; 0 <= alpha < 1.
double MarginOfRows(absl::Span<const double> rising, double alpha);

// A γ with P[margin < γ] ≤ α, from margins of n independent rows of the distribution that were not
// learnt with: true with probability 1 − doubt at least over the draw of the rows, whatever the
// distribution is. nullopt where no such statement can be made, for α = 0 always.
//
// It is the k-th smallest margin for the largest k with P[Bin(n, α) < k] ≤ doubt. Why: let q be the
// largest number with P[margin < q] ≤ α, so that P[margin ≤ q] ≥ α. The k-th smallest is over q
// only when fewer than k of the rows have a margin of q or less, and that has a probability of at
// most P[Bin(n, α) < k]. An order statistic is sharper than the band of Dvoretzky, Kiefer and
// Wolfowitz where α is small: of 1,000 rows at α = 0.05 and doubt 0.05 it is the 39th smallest, the
// band would have the 12th; but it speaks of one α only: share the doubt among those that are
// looked at. REQUIRES: margins rise; 0 <= alpha < 1; 0 < doubt < 1.
std::optional<double> MarginOfDistribution(absl::Span<const double> rising, double alpha,
                                           double doubt);
// The k above; 0 if there is none. Cost: about 50 sums of BinomialBelow.
int64_t ConfidentRank(int64_t n, double alpha, double doubt);

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_MARGIN_H_
