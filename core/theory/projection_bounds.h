// Computes how many dimensions suffice for a random projection. BBV is Balcan, Blum, Vempala 2006;
// AMS is Achlioptas, McSherry, Schölkopf 2001.
//
// Lengths. A projection R has k rows of independent entries, N(0, 1) or fair ±1, scaled by 1/√k. It
// keeps the squared length of a fixed vector within 1 ± e, except with a small probability. This
// probability is at most
//     2 exp(−(e² − e³)k/4)            by BBV, Theorem 2 (Arriaga, Vempala);
//     2 exp(−(k/2)(e²/2 − e³/3))      by AMS, eq. 4, and Shi et al. 2012, Lemma 10.
// The second bound is sharper for every e. Half of it is for lengths that are too small, and half
// for lengths that are too large.
//
// Angles. Let w and x be unit vectors, c their cosine before the projection and c' their cosine
// after it. If the squared lengths of w, of x and of w − x are kept within 1 ± e, then (Shi et al.
// 2012, Theorem 5)
//     (1+e)/(1−e)·c − 2e/(1−e)  <=  c'  <=  1 − √(1−e²)/(1+e) + e/(1+e) + (1−e)/(1+e)·c.
// The paper states this for acute angles. It holds for all angles, although the first inequality of
// the paper's eq. 9 does not.
//
// Unless a function states otherwise, it requires 0 < e < 1, 1e-4 <= margin <= 1, 0 < error < 1 and
// 0 < delta < 1. Functions return nullopt for counts over 2^53.
#ifndef PHIMAP_CORE_THEORY_PROJECTION_BOUNDS_H_
#define PHIMAP_CORE_THEORY_PROJECTION_BOUNDS_H_

#include <cstdint>
#include <optional>

namespace phimap {

// The origin of a number of the advisor. The values are those of the API.
enum class Tier {
  kLiteral = 1,  // the formula as the paper prints it
  kDerived = 2,  // sharper constants out of the same proof
  kExact = 3,    // the smallest number that the exact law of a Gaussian projection allows
};

// Returns the number of dimensions that keep one squared length within 1 ± e with probability 1 −
// delta. kLiteral uses BBV, Theorem 2; kDerived uses AMS, eq. 4.
std::optional<int64_t> LengthDimensions(Tier tier, double e, double delta);

// Returns the inverse of LengthDimensions. With `dimensions` dimensions, the result is the smallest
// e for which one squared length is kept within 1 ± e with probability 1 − delta. Its relative
// error is 1e-12. Returns nullopt if there are too few dimensions for any e < 1.
std::optional<double> LengthDistortion(Tier tier, int64_t dimensions, double delta);

// Bounds on the cosine after the projection, given the cosine before; Theorem 5.
double LowestCosine(double cosine, double e);
double HighestCosine(double cosine, double e);

// Returns the largest e for which a cosine of `from` is at least `to` after the projection. Let γ
// be `from` and γ' be `to`. kLiteral solves γ' = γ − 2e/(1−e), as Theorem 6 prints it. kDerived
// uses LowestCosine, so e = (γ−γ')/(2−γ−γ'), but at most 1 − 1e-6. REQUIRES: 0 < to < from <= 1.
double DistortionForCosine(Tier tier, double from, double to);

// Returns the smallest number of dimensions n > 12/(3e²−2e³)·ln(6·angles/δ). With n dimensions,
// Theorem 5 holds for all of `angles` angles at once, with probability 1 − δ. REQUIRES: angles >=
// 1.
std::optional<int64_t> AngleDimensions(double e, double angles, double delta);

// Returns a lower bound on the margin of a data set after a projection that keeps the squared
// lengths of Theorem 5 within 1 ± e. kLiteral returns γ − 2e/(1−e) (Theorem 6), kDerived returns
// LowestCosine. A margin that is not positive promises nothing.
double DataSetMargin(Tier tier, double margin, double e);

// Returns the number of dimensions of F3 that suffices by BBV, Theorem 3. F3's first step leaves a
// separator with error ε/2 at margin γ/2. With probability 1 − δ/2, its second step, the
// projection, must leave a separator with error ε at margin γ/4. For this it suffices that the
// cosine of each point falls from γ/2 to below γ/4 with probability at most p = εδ/4. The tiers
// differ in how they bound that probability:
//   kLiteral  three lengths by Theorem 2, e = γ/16:               4/(e²−e³)·ln(24/(εδ))
//   kDerived  one tail of three lengths, LowestCosine,
//             e = γ/(8−3γ):                                       12/(3e²−2e³)·ln(12/(εδ))
//   kExact    the exact law, for Gaussian entries only:           ProjectionDimensions(γ/2, γ/4, p)
std::optional<int64_t> F3Dimensions(Tier tier, double margin, double error, double delta);

// The result of BBV, Corollary 2: the dimensions d3 of an F3 that makes a whole labeled sample
// separable. The sample has N = d3·ln d3 examples. With probability 1 − δ − miss, all of them are
// separable at margin γ/4, because F3 misclassifies each with probability at most ε = miss/N. d3
// depends on ε, and ε on d3. Both numbers are therefore computed as a fixed point.
struct PerfectSample {
  double error = 0;
  std::optional<int64_t> dimensions;
  // N, rounded down.
  int64_t examples = 0;
};
PerfectSample F3PerfectSample(Tier tier, double margin, double miss, double delta);

// Returns the number of dimensions that suffices by Blum 2005, Theorem 3. The theorem projects
// φ-space itself and leaves error ε at margin γ/2, with probability 1 − δ. The paper gives only
// O(1/γ²·ln 1/(εδ)). This function uses the exact distribution of a cosine c = γ: it falls below t
// = γ/2 with probability at most p = εδ. For Gaussian entries only.
int64_t DirectDimensions(double margin, double error, double delta);

// Returns the number of dimensions s = (4 + 2β)/(e²/2 − e³/3)·ln n of AMS, Theorem 6, for n =
// `points` points. β is defined by n^−β = δ. With probability 1 − δ, the projection keeps all
// squared distances among the points within 1 ± e. Let x and y be two of the points. The error of
// their inner product is then at most e(‖x‖² + ‖y‖²) if ⟨x, y⟩ >= 0, and at most 3/2 of that
// otherwise. The projection must be scaled by 1/√s; the paper prints 1/√d. REQUIRES: points >= 2.
std::optional<int64_t> ProjectedKernelDimensions(double e, double points, double delta);

// The weak learner of Blum 2005, Theorem 1: a random separator.

// Returns a lower bound on the probability that a separator drawn uniformly at random has an error
// of at most 1/2 − γ/4. All examples except a share α have margin γ (`margin`). Returns 0 if the
// proof gives no positive bound.
//
// The paper says only Ω(γ). The proof: let w be the separator with margin γ, and h the drawn
// separator. With probability 1/2, h·w >= 0. If so, the expected error of h is at most (1 − α)(1/2
// − γ/π) + α, and Markov's inequality applies to it. Together with the factor 1/2, this gives the
// bound (1/π − 1/4)γ − α(1/2 + γ/π). For α = 0 it is 0.0683099 γ.
//
// Requires: 0 < margin <= 1, 0 <= alpha < 1.
double WeakLearnerSuccess(double margin, double alpha);

// Returns the number of draws of which, with probability 1 − delta, at least one is a separator
// with error at most 1/2 − γ/4. `success` is the probability that a single draw is such a
// separator. REQUIRES: 1e-12 <= success < 1, 0 < delta < 1.
int64_t WeakLearnerDraws(double success, double delta);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_PROJECTION_BOUNDS_H_
