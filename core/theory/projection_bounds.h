// Numbers of dimensions that suffice for a random projection.
//
// Lengths. Let R have k rows of independent N(0, 1) or fair ±1 entries, scaled by 1/√k. For a fixed
// vector the squared length is kept within 1 ± e, except with probability at most
//     2 exp(−(e² − e³)k/4)            Balcan, Blum, Vempala 2006, Theorem 2 (Arriaga, Vempala)
//     2 exp(−(k/2)(e²/2 − e³/3))      Achlioptas, McSherry, Schölkopf 2001, eq. 4; Shi et al. 2012,
//                                     Lemma 10: sharper for every e, each tail half of it.
// Angles. If the squared lengths of w, x and their difference (unit vectors of cosine c) are kept
// within 1 ± e, their cosine c' after the projection has (Shi et al. 2012, Theorem 5)
//     (1+e)/(1−e)·c − 2e/(1−e)  <=  c'  <=  1 − √(1−e²)/(1+e) + e/(1+e) + (1−e)/(1+e)·c.
// The theorem is stated for acute angles; it holds for all, though the first inequality of its
// eq. 9 does not.
//
// All require 0 < e < 1, 1e-4 <= margin <= 1, 0 < error < 1, 0 < delta < 1 unless they say
// otherwise, and give nullopt for counts over 2^53.
#ifndef PHIMAP_CORE_THEORY_PROJECTION_BOUNDS_H_
#define PHIMAP_CORE_THEORY_PROJECTION_BOUNDS_H_

#include <cstdint>
#include <optional>

#include "core/theory/tier.h"

namespace phimap {

// Dimensions that keep one squared length within 1 ± e with probability 1 − delta: kLiteral
// (Theorem 2 of BBV) or kDerived (eq. 4 of AMS).
std::optional<int64_t> LengthDimensions(Tier tier, double e, double delta);

// The inverse: the smallest e that `dimensions` keep with probability 1 − delta, to one part in
// 10^12. nullopt if there are too few for any e < 1.
std::optional<double> LengthDistortion(Tier tier, int64_t dimensions, double delta);

// Bounds on the cosine after the projection, given the cosine before; Theorem 5.
double LowestCosine(double cosine, double e);
double HighestCosine(double cosine, double e);

// The e at which a cosine `from` stays at least `to`, 0 < to < from <= 1. kLiteral: by
// γ' = γ − 2e/(1−e) as Theorem 6 prints it; kDerived: by LowestCosine, e = (γ−γ')/(2−γ−γ'),
// at most 1 − 1e-6.
double DistortionForCosine(Tier tier, double from, double to);

// n > 12/(3e²−2e³)·ln(6·angles/δ): with probability 1 − δ Theorem 5 holds for all of `angles`
// angles at once. REQUIRES: angles >= 1.
std::optional<int64_t> AngleDimensions(double e, double angles, double delta);

// The margin of a data set after a projection that keeps its angles with the separator within e:
// kLiteral γ − 2e/(1−e) (Theorem 6); kDerived LowestCosine. May be negative: then nothing is
// promised.
double DataSetMargin(Tier tier, double margin, double e);

// BBV Theorem 3, the second step of F3: a separator with error ε/2 at margin γ/2 keeps, with
// probability 1 − δ/2, error ε at margin γ/4. Suffices: for each point the cosine falls from γ/2
// under γ/4 with probability at most p = εδ/4.
//   kLiteral  e = γ/16, three lengths by Theorem 2: 4/(e²−e³)·ln(24/(εδ))
//   kDerived  e = γ/(8−3γ) by LowestCosine, one tail of three lengths: 12/(3e²−2e³)·ln(12/(εδ))
//   kExact    ProjectionDimensions(γ/2, γ/4, p); Gaussian entries only
std::optional<int64_t> F3Dimensions(Tier tier, double margin, double error, double delta);

// BBV Corollary 2: F3 for which N = d3·ln d3 labeled examples are all separable at margin γ/4 with
// probability 1 − δ − miss, since each is misclassified with probability at most ε = miss/N: a
// fixed point, as d3 depends on ε.
struct PerfectSample {
  double error = 0;
  std::optional<int64_t> dimensions;
  // N, rounded down.
  int64_t examples = 0;
};
PerfectSample F3PerfectSample(Tier tier, double margin, double miss, double delta);

// Blum 2005, Theorem 3: projecting φ-space itself, error ε at margin γ/2 with probability 1 − δ.
// The paper has O(1/γ²·ln 1/(εδ)) only; this is the exact law with c = γ, t = γ/2, p = εδ. Gaussian
// entries only.
int64_t DirectDimensions(double margin, double error, double delta);

// Achlioptas, McSherry, Schölkopf 2001, Theorem 6: s = (4 + 2β)/(e²/2 − e³/3)·ln n, with
// probability 1 − n^−β = 1 − δ, keeps all squared distances among n points within 1 ± e and their
// inner products within e(‖x‖² + ‖y‖²), for ⟨x, y⟩ >= 0; within 3e/2 of it in general. The
// projection must be scaled by 1/√s, where the paper prints 1/√d. REQUIRES: points >= 2.
std::optional<int64_t> ProjectedKernelDimensions(double e, double points, double delta);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_PROJECTION_BOUNDS_H_
