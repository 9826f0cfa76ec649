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
// of W are taken for independent errors of c·u each, which gives ‖F − F2‖ ≤ η√K(x, x) with
// η = c·u·√r·‖W‖_F·√M. c is 4, or what the squared distances make of it where rows are long beside
// the width of the kernel: they cancel, and err by u·(‖x‖² + ‖a_j‖²), which an rbf multiplies by γ.
// Then |‖F‖² − ‖F2‖²| ≤ e·K(x, x) and |F(x)·F(y) − F2(x)·F2(y)| ≤ e·√(K(x, x)·K(y, y)) with e = 2η
// + η², and by Cauchy and Schwarz a = 2e pays for both. Tests compare η with what real features err
// by.
#ifndef PHIMAP_CORE_PLAN_RESIDUAL_H_
#define PHIMAP_CORE_PLAN_RESIDUAL_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"
#include "core/plan/artifact.h"
#include "core/plan/rows.h"

namespace phimap {

// Immutable, thread-safe.
class Residual {
 public:
  // What η is made of: η for c = 1, what c multiplies ‖x‖² + max ‖a_j‖² by, and that maximum.
  struct Rounding {
    double unit = 0;
    double distance_rate = 0;
    double largest_norm = 0;
  };

  // Of F2; nullopt for another mapping, and for a plan that no builder of F2 makes.
  static std::optional<Residual> Of(const Plan& plan, const Provenance& provenance);

  // out[i] of row i, in float64. `features` are what the plan's engine made of the rows, in the
  // serving type. Cost: input + output columns operations a row, and the square of the input
  // columns for each bilinear form of the kernel. Pure, thread-safe, calls no BLAS.
  void Compute(const RowsView& rows, const void* features, double* out) const;

  // self[i] = K(x, x) of row i as it is served, and rounding[i] = η: how far its features are off
  // at most, over √K(x, x). Cost and threads: as Compute.
  void Lengths(const RowsView& rows, double* self, double* rounding) const;

  // a, for a row of this ‖x‖² after the input stage.
  double allowance(double squared_norm) const;
  int64_t memory_bytes() const {
    return static_cast<int64_t>((input_.shift.size() + input_.scale.size()) * sizeof(double));
  }

 private:
  Residual() = default;
  Matrix<double> AsServed(const RowsView& rows) const;
  double Kept(const void* features, int64_t i) const;
  // η.
  double FeatureError(double squared_norm) const;

  InputStage input_;  // projects nothing
  KernelProgram kernel_;
  FloatType serving_type_ = FloatType::kFloat32;
  int64_t output_columns_ = 0;
  Rounding rounding_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_RESIDUAL_H_
