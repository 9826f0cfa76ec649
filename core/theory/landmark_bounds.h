// Numbers of landmarks that suffice for F1 and F2.
//
// Balcan, Blum, Vempala 2006, Lemma 1: let a unit vector w separate with margin γ (a cosine), and
// draw d examples independently from the distribution. With probability 1 − δ some w' in their span
// has error at most ε at margin γ/2. F1 then has a separator of error ε (Corollary 1; no margin is
// promised), F2 one of error ε at margin γ/2 (Theorem 1).
//
// The proof: while the part of w outside the span, w_out, is large, each draw helps with
// probability ε, which means that it takes more than γ²/4 off ‖w_out‖², which is 1 at first. A draw
// z helps when |w_out·z| > γ/2, so none can once ‖w_out‖² <= γ²/4, and w_out is not large then.
// After j helpful draws ‖w_out‖² < 1 − jγ²/4, which is at most γ²/4 for j = ⌈4/γ²⌉ − 1. (The paper
// counts the last, impossible draw too; Blum's survey misprints its 4/γ² as 4/γ.)
//
// If a share α of the examples misses the margin the same d gives error α + ε: that a draw helps
// has nothing to do with its label. (BBV's own (1 − α)ε + α needs (1 − α)ε in place of ε in d when
// draws come from all of the distribution.)
//
// All require 1e-4 <= margin <= 1, 0 < error < 1, 0 < delta < 1, and give nullopt over 2^53.
#ifndef PHIMAP_CORE_THEORY_LANDMARK_BOUNDS_H_
#define PHIMAP_CORE_THEORY_LANDMARK_BOUNDS_H_

#include <cstdint>
#include <optional>

namespace phimap {

// d = (8/ε)(1/γ² + ln 1/δ), as printed: Chernoff's bound on the number of helpful draws.
std::optional<int64_t> LiteralLandmarks(double margin, double error, double delta);

// The smallest d with P[Bin(d, ε) < ⌈4/γ²⌉ − 1] <= δ: the same proof with the binomial law itself.
std::optional<int64_t> BinomialLandmarks(double margin, double error, double delta);

// ⌈4/γ²⌉ − 1: after so many helpful draws no further draw can help.
int64_t HelpfulDraws(double margin);

// The smallest error for which BinomialLandmarks is at most `landmarks`, to one part in 10^9;
// nullopt when `landmarks` does not reach HelpfulDraws. REQUIRES: 1 <= landmarks <= 2^53.
std::optional<double> ErrorOfLandmarks(double margin, int64_t landmarks, double delta);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_LANDMARK_BOUNDS_H_
