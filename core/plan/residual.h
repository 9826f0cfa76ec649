// ρ(x) = K(x, x) − ‖F2(x)‖²: the part of φ(x) outside the landmarks' span. For all x and y,
//
//     |K(x, y) − F2(x)·F2(y)| ≤ √(ρ(x)·ρ(y)).
//
// Features in float32 are not exact, so that the difference alone can be negative and the bound
// fail. The residual computed here is max(0, K(x, x) − ‖F(x)‖²) + a(x) for the features as they are
// served, with a from the plan's own numbers, so that the bound holds for those.
//
// Why: let u be the unit round-off, W the plan's triangle, r its order, D the landmarks' K(a, a)
// and U = u·‖D^{1/2}·W‖_F, a number that no scale of rows enters. A kernel value is computed with
// an error of at most u·v(x)·√K(a, a), which KernelRounding carries from operation to operation.
// Two things make features err:
//   the sums of r products with W's columns: their terms are kernel values of at most
//       √(K(x, x)·K(a, a)), and 4·√r roundings of each are counted, 4·√r·U·√K(x, x) in all;
//   the values' own errors, from which W makes U·v(x) if those of different landmarks are
//       independent, and √r·U·v(x) whatever they are: min(3, √r)·U·v(x) are counted, of a v that
//       is twice the deviation of a chain of roundings already. W does not magnify their common
//       part, such as the rounding of ‖x‖².
// The larger is η(x), and ‖F − F2‖ ≤ η(x); at least h·√K(x, x) with h = 4·√r·U. Two things are to
// be paid for:
//   what ρ is off by:           |‖F‖² − ‖F2‖²| ≤ 2√K(x, x)·η(x) + η(x)²;
//   what the features are off:  |F(x)·F(y) − F2(x)·F2(y)| ≤ √K(x, x)·η(y) + √K(y, y)·η(x) +
//                               η(x)·η(y), of which the first two are no more than
//                               s(x)·s(y)/2h, s = η + h·√K: their difference is
//                               (η(x) − h√K(x, x))·(η(y) − h√K(y, y))/2h ≥ 0.
// a(x) = 2√K(x, x)·η(x) + 2η(x)² + s(x)²/2h pays for both, by Cauchy and Schwarz. Tests compare η
// with real features' errors, and every build compares the bound with pairs of held-out rows.
//
// Plans of old, which do not have D (TriangularProjection::self_values), keep the bound that they
// were served with: u·√r·‖W‖_F·max(v, 4√(K(x, x)·M)) with M = max K(a, a) is η, and
// 2√K(x, x)·η + η² + η²·(2/h + 1) is a, h = 4u·√r·‖W‖_F·√M.
#ifndef PHIMAP_CORE_PLAN_RESIDUAL_H_
#define PHIMAP_CORE_PLAN_RESIDUAL_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/kernel_rounding.h"
#include "core/linalg/matrix.h"
#include "core/plan/artifact.h"
#include "core/plan/examples.h"

namespace phimap {

// Immutable, thread-safe.
class Residual {
 public:
  // The parts that η is computed from.
  struct Rounding {
    // U; for old plans, and for a folded linear kernel, u·√r·‖W‖_F.
    double unit = 0;
    // M, for old plans.
    double largest = 0;
    // True unless the plan is old. `sums` is then 4·√r, and `values` min(3, √r).
    bool of_shares = false;
    double sums = 0;
    double values = 0;
    // Length that sums of products lose because terms underflow: an absolute error of every row.
    double lost = 0;
    // nullopt if there are no kernel values, or their computation is unknown.
    std::optional<KernelRounding> kernel;
  };

  // Whether versions whose mapping has this text serve ρ.
  static bool IsServedBy(absl::string_view mapping_text);
  // Returns nullopt unless the plan is one that a builder of F2 makes.
  static std::optional<Residual> Of(const Plan& plan, const Provenance& provenance);

  // Whether the kernel is remote. The rows are then rows of the engine, with K(x, x) as their last
  // number.
  bool is_remote() const { return is_remote_; }

  // Sets out[i] to ρ of row i, in float64. It is ∞ if the row's K(x, x) was sent and is less than
  // ‖F(x)‖², or if all digits of a row that is not 0 underflow. `features`: the features of the
  // rows from the plan's engine, in the serving type. Cost: input + output columns operations a
  // row, and the square of the input columns for each bilinear form. Pure, thread-safe, calls no
  // BLAS.
  void Compute(const ExamplesView& rows, const void* features, double* out) const;

  // Sets self[i] to K(x, x) of row i as served, and rounding[i] to η/√K(x, x), the largest relative
  // error of its features. Cost and threads: as Compute.
  void Lengths(const ExamplesView& rows, double* self, double* rounding) const;

  // η of a row after the input stage, given ‖x‖² and K(x, x). For strings x is k_m(x, x) of each
  // kernel of strings; for values of a remote kernel it is not used.
  double FeatureError(const double* x, double squared_norm, double self) const;
  int64_t memory_bytes() const {
    return static_cast<int64_t>((input_.shift.size() + input_.scale.size()) * sizeof(double));
  }

 private:
  // Some rows, with the inputs of FeatureError and K(x, x).
  struct Seen {
    Matrix<double> x;
    std::vector<double> norms;
    std::vector<double> self;
  };

  Residual() = default;
  static std::optional<Residual> OfRemote(const Plan& plan);
  Matrix<double> AsServed(const ExamplesView& rows) const;
  Seen See(const ExamplesView& rows) const;
  double Kept(const void* features, int64_t i) const;
  void ComputeRemote(const ExamplesView& rows, const void* features, double* out) const;
  double Allowance(double feature_error, double self) const;

  InputStage input_;  // projects nothing
  KernelProgram kernel_;
  FloatType serving_type_ = FloatType::kFloat32;
  int64_t output_columns_ = 0;
  Rounding rounding_;
  bool is_remote_ = false;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_RESIDUAL_H_
