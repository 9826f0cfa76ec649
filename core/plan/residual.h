// ρ(x) = K(x, x) − ‖F2(x)‖²: what of φ(x) lies outside of the landmarks' span. For all x and y,
//
//     |K(x, y) − F2(x)·F2(y)| ≤ √(ρ(x)·ρ(y)).
//
// Features in float32 are not exact, so that the difference alone can be negative and the bound
// fail. What is computed here is max(0, K(x, x) − ‖F(x)‖²) + a·K(x, x) of the features as they are
// served, with a from the plan's own numbers, so that the bound holds for those.
//
// Why: let u be the unit round-off, W the plan's triangle, r its order and M = max K(a_j, a_j). A
// kernel value is at most √(K(x, x)·M); its rounding and that of a sum of r products with a column
// of W are taken for independent errors of 4u each, which gives ‖F − F2‖ ≤ η√K(x, x) with
// η = 4u·√r·‖W‖_F·√M. Then |‖F‖² − ‖F2‖²| ≤ e·K(x, x) and |F(x)·F(y) − F2(x)·F2(y)| ≤
// e·√(K(x, x)·K(y, y)) with e = 2η + η², and by Cauchy and Schwarz a = 2e pays for both. Tests
// compare η with what real features err by.
#ifndef PHIMAP_CORE_PLAN_RESIDUAL_H_
#define PHIMAP_CORE_PLAN_RESIDUAL_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/kernel/kernel_program.h"
#include "core/plan/artifact.h"
#include "core/plan/rows.h"

namespace phimap {

// Immutable, thread-safe.
class Residual {
 public:
  // Of F2; nullopt for another mapping, and for a plan that no builder of F2 makes.
  static std::optional<Residual> Of(const Plan& plan, const Provenance& provenance);

  // out[i] of row i, in float64. `features` are what the plan's engine made of the rows, in the
  // serving type. Cost: input + output columns operations a row.
  void Compute(const RowsView& rows, const void* features, double* out) const;

  // a.
  double allowance() const { return allowance_; }
  int64_t memory_bytes() const {
    return static_cast<int64_t>((shift_.size() + scale_.size()) * sizeof(double));
  }

 private:
  Residual() = default;
  double SelfSimilarity(const RowsView& rows, int64_t i, std::vector<double>& x) const;

  std::vector<double> shift_;
  std::vector<double> scale_;
  KernelProgram kernel_;
  FloatType serving_type_ = FloatType::kFloat32;
  int64_t output_columns_ = 0;
  double allowance_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_RESIDUAL_H_
