// Computes a bound on the kernel error of F2. F2 maps a row x to the coordinates, in an orthonormal
// basis, of the projection of φ(x) onto the landmarks' span. The residual ρ(x) = K(x, x) − ‖F2(x)‖²
// is the squared length of the part of φ(x) outside of that span. For all x and y,
//
//     |K(x, y) − F2(x)·F2(y)| ≤ √(ρ(x)·ρ(y)).
//
// The features that are served, F, are F2 with rounding errors. K(x, x) − ‖F(x)‖² can therefore be
// negative, and the bound can fail. Two numbers are computed for each row. The residual as served
// is the value max(0, K(x, x) − ‖F(x)‖²), which lies in [0, K(x, x)]. The allowance a(x) for
// rounding is a number of its own, and not part of the value. For the features F,
//
//     |K(x, y) − F(x)·F(y)| ≤ √((ρ(x) + a(x))·(ρ(y) + a(y)))   and   |ρ(x) − ρ of F2| ≤ a(x).
//
// Notation. u is the unit round-off of the serving type. W is the plan's triangle, and r its order.
// D is the diagonal matrix of K(a, a) of the landmarks a. From these, U = u·‖D^{1/2}·W‖_F. U does
// not depend on the scale of the landmarks. v(x) is the largest error of a kernel value K(x, a),
// divided by u·√K(a, a). KernelRounding computes v(x) by carrying the error of each operation to
// the next.
//
// The error of features. η(x) is the bound used for ‖F(x) − F2(x)‖. Features have errors from two
// sources:
//   1. Rounding in the sums of r products with W's columns. The terms are kernel values of at most
//      √(K(x, x)·K(a, a)). Allowing 4·√r roundings for each sum gives 4·√r·U·√K(x, x).
//   2. Errors of the kernel values. W turns them into at most √r·U·v(x). If the errors of different
//      landmarks are independent, W turns them into only U·v(x). An error that all landmarks
//      share, such as the rounding of ‖x‖², is not magnified by W. The allowance is
//      min(3, √r)·U·v(x), and v(x) is already twice the deviation of a chain of roundings.
// η(x) is the larger of the two allowances. This model of rounding assumes independent errors, so
// η(x) is not a proven bound; docs/maths.md says which parts are proven, and for which sizes. Tests
// compare η with the errors of real features, and every build compares the bound with pairs of
// held-out rows.
//
// The allowance. Let h = 4·√r·U. Then η(x) ≥ h·√K(x, x), because of source 1. Let s(x) = η(x) +
// h·√K(x, x). Two consequences of rounding must be covered:
//   Error of ρ:         |‖F‖² − ‖F2‖²| ≤ 2√K(x, x)·η(x) + η(x)².
//   Error of products:  |F(x)·F(y) − F2(x)·F2(y)| ≤
//                       √K(x, x)·η(y) + √K(y, y)·η(x) + η(x)·η(y).
// In the last line, the first two terms together are at most s(x)·s(y)/2h. The difference is (η(x)
// − h√K(x, x))·(η(y) − h√K(y, y))/2h, which is not negative. By the Cauchy–Schwarz inequality, a(x)
// = 2√K(x, x)·η(x) + 2η(x)² + s(x)²/2h covers both errors.
//
// Old plans do not store D (TriangularProjection::self_values). They keep the bound that they were
// served with. Let M = max K(a, a), and h = 4u·√r·‖W‖_F·√M. For old plans, v(x) is the largest
// error of a kernel value, divided by u alone. Then
//   η(x) = u·√r·‖W‖_F·max(v(x), 4√(K(x, x)·M)),
//   a(x) = 2√K(x, x)·η(x) + η(x)² + η(x)²·(2/h + 1).
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
    // U. For old plans, and for a folded linear kernel, this is u·√r·‖W‖_F, without D.
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

  // The family of mappings whose versions serve ρ.
  static constexpr absl::string_view kFamily = "f2";
  // Whether versions whose mapping has this text serve ρ.
  static bool IsServedBy(absl::string_view spec_text);
  // Returns nullopt unless the plan is one that a builder of F2 makes.
  static std::optional<Residual> Of(const Plan& plan, const Provenance& provenance);

  // Whether the kernel is remote. The rows are then rows of the engine, with K(x, x) as their last
  // number.
  bool is_remote() const { return is_remote_; }
  // Type of the features that Compute takes.
  FloatType serving_type() const { return serving_type_; }

  // Sets residuals[i] to the ρ of row i that is served, a number in [0, K(x, x)], and
  // allowances[i] to a(x), in float64. `allowances` may be null. `features` are the features of the
  // rows from the plan's engine, in the serving type.
  //
  // In two cases nothing is known of the row's residual. ρ is then K(x, x), or 0 if that is
  // negative, and a(x) is ∞. The first case is a K(x, x) that was sent with the row and is
  // negative, or less than ‖F(x)‖² by more than a(x). The second is a row that is not 0 but loses
  // all its digits to underflow.
  //
  // Cost: for each row, input + output columns operations, and the square of the input columns for
  //       each bilinear form; for allowances also KernelRounding::ScaledOf. Pure, thread-safe,
  //       calls no BLAS.
  void Compute(const ExamplesView& rows, const void* features, double* residuals,
               double* allowances) const;
  // Returns the allowance a(x), for a row whose features err by `feature_error` (FeatureError) and
  // whose K(x, x) is `self`. The error of K(x, x) itself is not included.
  double Allowance(double feature_error, double self) const;

  // Sets self[i] to K(x, x) of row i as served. Sets rounding[i] to η/√K(x, x), a bound on the
  // relative error of the row's features. Cost and threads: as Compute.
  void Lengths(const ExamplesView& rows, double* self, double* rounding) const;

  // Returns η of a row x, the bound on the error of its features. `x` is the row after the input
  // stage, `squared_norm` is ‖x‖², and `self` is K(x, x). For strings, `x` holds k_m(x, x) of each
  // string kernel m. For values of a remote kernel, `x` is not used.
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
  void ComputeRemote(const ExamplesView& rows, const void* features, double* residuals,
                     double* allowances) const;
  double AllowanceOf(const double* x, double squared_norm, double self) const;

  InputStage input_;  // projects nothing
  KernelProgram kernel_;
  FloatType serving_type_ = FloatType::kFloat32;
  int64_t output_columns_ = 0;
  Rounding rounding_;
  bool is_remote_ = false;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_RESIDUAL_H_
