// How much the scores of a folded program differ from V·F(x) + b (head_program.h): a bound that is
// proven, and a measurement that decides whether a head is served folded.
//
// The bound. T is the serving type and u its unit round-off, v = 2⁻⁵³ that of float64. Both
// programs start from the same numbers q = z − μ, bit by bit, since they share the stages before W.
// W is m×d and V is d×c; without W, m = d and W is the identity. A chain of n terms rounds each of
// them at most r(n) = min(n, 512) + ⌈n/512⌉ + 1 times: once for each step of its block that is
// left, once for each sum of blocks, and once more where a product is rounded before it is added,
// without fused multiply-add. So a chain returns Σ a_k·b_k·(1 + θ_k) with |θ_k| ≤ γ(n, u) =
// r(n)·u/(1 − r(n)·u) (Higham, Accuracy and Stability of Numerical Algorithms, 2002, Lemma 3.1).
// Thus, apart from underflow,
//
//     unfolded   Σ_j Σ_k q_k·W_kj·V_j·(1 + θ_kj)(1 + θ'_j)         |θ| ≤ γ(m, u), |θ'| ≤ γ(d, v)
//     folded     Σ_k q_k·(1 + θ''_k)·(1 + δ_k)·Σ_j W_kj·V_j·(1 + φ_kj)
//                                               |θ''| ≤ γ(m, u), |δ| ≤ u, |φ| ≤ γ(d, v)
//
// The difference of the two is at most (e₁ + e₂)·B, where B = |q|·(|W||V|), and
//
//     e₁ = (1 + γ(m, u))·(1 + γ(d, v)) − 1,   e₂ = (1 + γ(m, u))·(1 + u)·(1 + γ(d, v)) − 1.
//
// Without W, nothing is computed before V, so e₁ = γ(d, v) and e₂ = (1 + γ(m, u))·(1 + u) − 1. The
// additions of b round both sums once, which adds at most 2v·((1 + e₂)·B + |b|). A number that
// underflows is off by at most half of the smallest subnormal number, η of T and ε of float64. Each
// of the m terms of a feature, the elements of W·V and the terms of the scores can underflow, which
// adds at most η·(m·(‖V‖₁ + 1) + ‖q‖₁) + ε·(d·(1 + ‖q‖₁)), in which the missing halves pay for the
// factors 1 + γ.
//
// B is as large as W is, whatever cancels in W·V, so for smooth kernels, whose W is
// ill-conditioned, the bound says nothing; hence the measurement.
#ifndef PHIMAP_CORE_HEAD_FOLDING_H_
#define PHIMAP_CORE_HEAD_FOLDING_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/engine/engine.h"
#include "core/head/head.h"
#include "core/linalg/matrix.h"
#include "core/plan/examples.h"
#include "core/plan/plan.h"

namespace phimap {

// Immutable, thread-safe.
class FoldingBound {
 public:
  // REQUIRES: the head is valid for the plan. Cost: as FoldPlan, and memory for m×c numbers.
  FoldingBound(const Plan& plan, const Head& head);

  // Number of features of the plan's feature stage, m.
  int64_t features() const { return magnitudes_.rows(); }
  int64_t scores() const { return magnitudes_.cols(); }
  // Sets bounds[j] to a number that |folded − unfolded| of score j cannot exceed, for a row whose
  // features after the shift by μ are `q`. Holds for scores that are finite. Cost: m·c.
  void Compute(const double* q, double* bounds) const;

 private:
  Matrix<double> magnitudes_;  // |W||V|
  std::vector<double> intercepts_;
  // e₁ + e₂, 2v·(1 + e₂), and the parts for underflow: a constant for each score, and a factor of
  // ‖q‖₁.
  double relative_ = 0;
  double addition_ = 0;
  std::vector<double> underflow_;
  double underflow_of_q_ = 0;
};

// Largest share of answers that folding may change in a version that is served folded.
inline constexpr double kMostChangedAnswers = 0.001;

struct FoldingMeasurement {
  // Rows that were compared; 0 if the head cannot be folded, since W·V overflows or is too large.
  int64_t rows = 0;
  // Over all rows and scores: the largest |folded − unfolded|, in units of the scores, and the
  // largest bound.
  double largest_difference = 0;
  double largest_bound = 0;
  // Rows whose answer differs: another class; or a number that differs by more than
  // kMostChangedAnswers of the standard deviation of the unfolded numbers, or that overflows.
  int64_t changed = 0;

  // Whether the version is to be served folded.
  bool Folds() const {
    return rows > 0 &&
           static_cast<double>(changed) <= kMostChangedAnswers * static_cast<double>(rows);
  }
};

// Compares the folded program of a plan and a head with the unfolded one on `rows`. `features` is
// the plan's engine.
// Errors: OUT_OF_RANGE for a row whose features overflow, INVALID_ARGUMENT for rows that the engine
//         does not take and for a head that is not valid for the plan. Throws std::bad_alloc.
// Cost:   three engines' time for each row, and memory for a folded plan.
absl::StatusOr<FoldingMeasurement> MeasureFolding(Plan plan, std::shared_ptr<const Engine> features,
                                                  const Head& head, const ExamplesView& rows);

}  // namespace phimap

#endif  // PHIMAP_CORE_HEAD_FOLDING_H_
