// Computes how many landmarks suffice for F1 and F2.
//
// The source is Balcan, Blum, Vempala 2006, Lemma 1. Let w be a unit vector that separates the
// distribution with margin γ (a cosine). Draw d examples independently from the distribution. With
// probability 1 − δ, their span contains a vector w' that has error at most ε at margin γ/2. Then
// F1 has a separator of error ε, but no margin is promised (Corollary 1). F2 has a separator of
// error ε at margin γ/2 (Theorem 1).
//
// The number of helpful draws. Let w_out be the part of w outside of the span of the examples drawn
// so far. At first, ‖w_out‖² = 1. A draw z helps if |w_out·z| > γ/2. A helpful draw reduces
// ‖w_out‖² by more than γ²/4. As long as w' has not been found, a draw helps with probability at
// least ε. No draw can help once ‖w_out‖² <= γ²/4. This happens after j = ⌈4/γ²⌉ − 1 helpful draws,
// because ‖w_out‖² is then less than 1 − jγ²/4 <= γ²/4. The paper counts one more draw, which is
// impossible. Blum's survey misprints the paper's 4/γ² as 4/γ.
//
// Examples without the margin. If a share α of the examples misses the margin, the same d gives an
// error of α + ε, because whether a draw helps does not depend on its label. The paper states the
// error (1 − α)ε + α. If draws come from the whole distribution, that error needs a larger d, with
// (1 − α)ε in place of ε.
//
// All functions require 1e-4 <= margin <= 1, 0 < error < 1 and 0 < delta < 1. They return nullopt
// for results over 2^53.
#ifndef PHIMAP_CORE_THEORY_LANDMARK_BOUNDS_H_
#define PHIMAP_CORE_THEORY_LANDMARK_BOUNDS_H_

#include <cstdint>
#include <optional>

namespace phimap {

// Returns d = (8/ε)(1/γ² + ln 1/δ), as the paper prints it. The paper bounds the number of helpful
// draws by Chernoff's inequality.
std::optional<int64_t> LiteralLandmarks(double margin, double error, double delta);

// Returns the smallest d with P[Bin(d, ε) < ⌈4/γ²⌉ − 1] <= δ. This is the same proof with the
// binomial distribution itself instead of Chernoff's inequality.
std::optional<int64_t> BinomialLandmarks(double margin, double error, double delta);

// Returns ⌈4/γ²⌉ − 1, the number of helpful draws after which no further draw can help.
int64_t HelpfulDraws(double margin);

// Returns the smallest error for which BinomialLandmarks is at most `landmarks`, with a relative
// error of 1e-9. Returns nullopt if `landmarks` is less than HelpfulDraws. REQUIRES: 1 <= landmarks
// <= 2^53.
std::optional<double> ErrorOfLandmarks(double margin, int64_t landmarks, double delta);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_LANDMARK_BOUNDS_H_
