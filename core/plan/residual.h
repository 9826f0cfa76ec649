// ρ(x) = K(x, x) − ‖F2(x)‖²: what of φ(x) lies outside of the landmarks' span. For all x and y,
//
//     |K(x, y) − F2(x)·F2(y)| ≤ √(ρ(x)·ρ(y)).
//
// Features in float32 are not exact, so that the difference alone can be negative and the bound
// fail. What is computed here is max(0, K(x, x) − ‖F(x)‖²) + a(x) of the features as they are
// served, with a from the plan's own numbers, so that the bound holds for those.
//
// Why: let u be the unit round-off, W the plan's triangle, r its order and M = max K(a_j, a_j). A
// kernel value is at most √(K(x, x)·M). It is computed with an error of at most u·v(x), which
// KernelRounding carries from operation to operation. That error, and the rounding of a sum of r
// products with a column of W, are taken for independent, which gives ‖F − F2‖ ≤ η(x) =
// u·√r·‖W‖_F·max(v(x), 4√(K(x, x)·M)), at least h·√K(x, x) with h = 4u·√r·‖W‖_F·√M. Two things
// are to be paid for:
//   what ρ is off by:           |‖F‖² − ‖F2‖²| ≤ 2√K(x, x)·η(x) + η(x)²;
//   what the features are off:  |F(x)·F(y) − F2(x)·F2(y)| ≤ √K(x, x)·η(y) + √K(y, y)·η(x) +
//                               η(x)·η(y) ≤ η(x)·η(y)·(2/h + 1), as √K(x, x) ≤ η(x)/h.
// a(x) = 2√K(x, x)·η(x) + η(x)² + η(x)²·(2/h + 1) pays for both, by Cauchy and Schwarz. Tests
// compare η with what real features err by, and every build compares the bound with pairs of
// held-out rows.
#ifndef PHIMAP_CORE_PLAN_RESIDUAL_H_
#define PHIMAP_CORE_PLAN_RESIDUAL_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/kernel/kernel_program.h"
#include "core/kernel/kernel_rounding.h"
#include "core/linalg/matrix.h"
#include "core/plan/artifact.h"
#include "core/plan/examples.h"

namespace phimap {

// Immutable, thread-safe.
class Residual {
 public:
  // What η is made of.
  struct Rounding {
    // u·√r·‖W‖_F.
    double unit = 0;
    // M.
    double largest = 0;
    // nullopt: features are products with fixed rows themselves, and v(x) is 4√(K(x, x)·M).
    std::optional<KernelRounding> kernel;
  };

  // Of F2; nullopt for another mapping, and for a plan that no builder of F2 makes.
  static std::optional<Residual> Of(const Plan& plan, const Provenance& provenance);

  // Whether it is of values that come from elsewhere: then rows are those of the engine, with K(x,
  // x) as their last number.
  bool is_external() const { return is_external_; }

  // out[i] of row i, in float64; ∞ if its K(x, x) came and is less than ‖F(x)‖². `features`: what
  // the plan's engine made of the rows, in the serving type. Cost: input + output columns
  // operations a row, the square of the input columns for each bilinear form. Pure, thread-safe,
  // calls no BLAS.
  void Compute(const ExamplesView& rows, const void* features, double* out) const;

  // self[i] = K(x, x) of row i as it is served, and rounding[i] = η/√K(x, x): how far its features
  // are off at most, over their length. Cost and threads: as Compute.
  void Lengths(const ExamplesView& rows, double* self, double* rounding) const;

  // η of a row after the input stage, of ‖x‖² and K(x, x). Of strings x is k_m(x, x) of each kernel
  // of strings, and of values from elsewhere it is not looked at.
  double FeatureError(const double* x, double squared_norm, double self) const;
  int64_t memory_bytes() const {
    return static_cast<int64_t>((input_.shift.size() + input_.scale.size()) * sizeof(double));
  }

 private:
  // Some rows, what FeatureError reads of them, and K(x, x).
  struct Seen {
    Matrix<double> x;
    std::vector<double> norms;
    std::vector<double> self;
  };

  Residual() = default;
  static std::optional<Residual> OfExternal(const Plan& plan);
  Matrix<double> AsServed(const ExamplesView& rows) const;
  Seen See(const ExamplesView& rows) const;
  double Kept(const void* features, int64_t i) const;
  void ComputeExternal(const ExamplesView& rows, const void* features, double* out) const;
  double Allowance(double feature_error, double self) const;

  InputStage input_;  // projects nothing
  KernelProgram kernel_;
  FloatType serving_type_ = FloatType::kFloat32;
  int64_t output_columns_ = 0;
  Rounding rounding_;
  bool is_external_ = false;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_RESIDUAL_H_
