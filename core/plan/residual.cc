#include "core/plan/residual.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/string_kernel.h"
#include "core/plan/plan.h"
#include "core/plan/rows.h"
#include "core/status/check.h"

namespace phimap {
namespace {

// Number of rows whose K(x, x) is computed at a time.
constexpr int64_t kTileRows = 64;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <typename T>
Matrix<double> Widened(const Matrix<T>& rows) {
  Matrix<double> wide = Matrix<double>::Uninit(rows.rows(), rows.cols());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    std::copy_n(rows.row(i), rows.cols(), wide.row(i));
  }
  return wide;
}

// Returns ‖x_i‖² of each row in float64.
std::vector<double> NormsOf(ConstMatrixView<double> x) {
  std::vector<double> norms(static_cast<size_t>(x.rows()));
  for (int64_t i = 0; i < x.rows(); ++i) norms[i] = SquaredNorm(x.row(i), x.cols());
  return norms;
}

// Number of roundings assumed for each kernel value, and the least number assumed for each sum of
// products with a column of W.
constexpr double kRoundings = 4;

// Returns the largest length that underflow can take from `outputs` sums of `terms` products.
template <typename T>
double LostInSums(int64_t terms, int64_t outputs) {
  return static_cast<double>(terms) * std::sqrt(static_cast<double>(outputs)) *
         (sizeof(T) == 4 ? 0x1p-149 : 0x1p-1074);
}

// Returns the rounding of a triangle that stores K(a, a) of its landmarks.
template <typename T>
Residual::Rounding SharedRounding(const TriangularProjection<T>& triangle) {
  const double root = std::sqrt(static_cast<double>(triangle.order));
  double square = 0;
  for (int64_t k = 0; k < triangle.order; ++k) {
    square += triangle.self_values[static_cast<size_t>(k)] *
              SquaredNorm(triangle.elements.data() + triangle.RowOffset(k), triangle.order - k);
  }
  return {.unit = std::ldexp(1.0, sizeof(T) == 4 ? -24 : -53) * std::sqrt(square),
          .largest = 1,
          .of_shares = true,
          .sums = 4 * root,
          .values = std::min(3.0, root),
          .lost = LostInSums<T>(triangle.order, triangle.order),
          .kernel = std::nullopt};
}

// Returns the rounding for values of a remote kernel. For an old plan, the largest K(a, a) is that
// of the first pivot a. The first number of W is 1/√K(a, a).
template <typename T>
std::optional<Residual::Rounding> RemoteRounding(const ServingStages<T>& stages) {
  const auto* triangle = std::get_if<TriangularProjection<T>>(&stages.projection);
  if (triangle == nullptr || !stages.centre.empty()) return std::nullopt;
  if (!triangle->self_values.empty()) return SharedRounding(*triangle);
  const double first = triangle->elements.data()[0];
  Residual::Rounding rounding;
  rounding.unit = std::ldexp(1.0, sizeof(T) == 4 ? -24 : -53) *
                  std::sqrt(static_cast<double>(triangle->order) *
                            SquaredNorm(triangle->elements.data(), triangle->elements.size()));
  rounding.largest = 1 / (first * first);
  return rounding;
}

// Returns k_m(x, x) of each string and each string kernel m.
template <typename StringAt>
Matrix<double> SquaresOf(const KernelProgram& kernel, int64_t count, const StringAt& string_at) {
  Matrix<double> squares = Matrix<double>::Uninit(count, kernel.strings().size());
  NgramCounts scratch;
  for (int64_t i = 0; i < count; ++i) {
    StringSquares(kernel.strings(), string_at(i), scratch, squares.row(i));
  }
  return squares;
}

// Like RoundingOf, for an F2 of strings.
template <typename T>
std::optional<Residual::Rounding> StringRounding(const ServingStages<T>& stages,
                                                 const StringFeatures& features,
                                                 const KernelProgram& kernel) {
  const auto* triangle = std::get_if<TriangularProjection<T>>(&stages.projection);
  if (triangle == nullptr || !stages.centre.empty() || !(features.program == kernel)) {
    return std::nullopt;
  }
  const Matrix<double> squares =
      SquaresOf(kernel, static_cast<int64_t>(features.strings.size()),
                [&](int64_t i) -> const std::string& { return features.strings[i]; });
  if (!triangle->self_values.empty()) {
    Residual::Rounding rounding = SharedRounding(*triangle);
    rounding.kernel = KernelRounding::OfShares(kernel, squares.view(), triangle->self_values,
                                               std::ldexp(1.0, sizeof(T) == 4 ? -24 : -53));
    return rounding;
  }
  const std::vector<double> diagonal = StringDiagonal(kernel, squares.view());
  const double u = std::ldexp(1.0, sizeof(T) == 4 ? -24 : -53);
  Residual::Rounding rounding;
  rounding.largest = *std::max_element(diagonal.begin(), diagonal.end());
  rounding.unit = u * std::sqrt(static_cast<double>(triangle->order) *
                                SquaredNorm(triangle->elements.data(), triangle->elements.size()));
  rounding.kernel.emplace(kernel, squares.view(), u);
  return rounding;
}

// Computes the parts from which η is computed. Returns nullopt if the plan is not a plan of an F2.
template <typename T>
std::optional<Residual::Rounding> RoundingOf(const ServingStages<T>& stages,
                                             const KernelProgram& kernel, double linear_factor) {
  if (const auto* strings = std::get_if<StringFeatures>(&stages.features)) {
    return StringRounding(stages, *strings, kernel);
  }
  const auto* features = std::get_if<ProductFeatures<T>>(&stages.features);
  if (features == nullptr || !stages.centre.empty()) return std::nullopt;
  const Matrix<T>& rows = features->rows;
  const double u = std::ldexp(1.0, sizeof(T) == 4 ? -24 : -53);
  Residual::Rounding rounding;
  if (std::holds_alternative<NoProjection>(stages.projection)) {
    // A linear kernel c·xᵀy, whose features are one product of x with a matrix B. Each feature is a
    // sum of p products, where p is the number of columns of x. K(x, x) is c‖x‖².
    if (!(linear_factor > 0) || !features->program.is_identity()) return std::nullopt;
    rounding.unit = u * std::sqrt(static_cast<double>(rows.cols()) *
                                  SquaredNorm(rows.data(), rows.size()) / linear_factor);
    rounding.largest = 1;
    rounding.lost = LostInSums<T>(rows.cols(), rows.rows());
    return rounding;
  }
  const auto* triangle = std::get_if<TriangularProjection<T>>(&stages.projection);
  if (triangle == nullptr || !(features->program == kernel)) return std::nullopt;
  const Matrix<double> pivots = Widened(rows);
  if (!triangle->self_values.empty()) {
    rounding = SharedRounding(*triangle);
    rounding.kernel = KernelRounding::OfShares(kernel, pivots.view(), triangle->self_values, u);
    return rounding;
  }
  const std::vector<double> norms = NormsOf(pivots.view());
  const std::vector<double> diagonal = KernelDiagonal(kernel, pivots.view(), norms);
  rounding.largest = *std::max_element(diagonal.begin(), diagonal.end());
  rounding.unit = u * std::sqrt(static_cast<double>(triangle->order) *
                                SquaredNorm(triangle->elements.data(), triangle->elements.size()));
  rounding.kernel.emplace(kernel, pivots.view(), u);
  return rounding;
}

// Returns the program of `kernel` with which the plan computes its features. Builds have compiled
// some kernels to programs with other roundings than today's. The result is `kernel` itself if the
// plan is not one of this kernel.
template <typename T>
KernelProgram AsPlanned(const ServingStages<T>& stages, const KernelProgram& kernel) {
  const auto* features = std::get_if<ProductFeatures<T>>(&stages.features);
  if (features == nullptr || features->program == kernel) return kernel;
  const KernelProgram expanded = WithExpandedDistances(kernel);
  return features->program == expanded ? expanded : kernel;
}

bool IsZeroRow(const double* x, int64_t columns) {
  return std::all_of(x, x + columns, [](double value) { return value == 0; });
}

// For K(x, x) below this, squares of errors underflow in float64 too, and no computed bound holds.
constexpr double kLeastSelf = 0x1p-900;

// Whether the K(x, x) of a nonzero row is too small for any bound.
bool IsLostToUnderflow(const double* x, int64_t columns, double self) {
  return self < kLeastSelf && !IsZeroRow(x, columns);
}

}  // namespace

bool Residual::IsServedBy(absl::string_view spec_text) {
  return absl::StartsWith(spec_text, absl::StrCat(kFamily, "("));
}

std::optional<Residual> Residual::Of(const Plan& plan, const Provenance& provenance) {
  if (!IsServedBy(provenance.spec_text)) return std::nullopt;
  if (std::visit(
          [](const auto& stages) {
            return std::holds_alternative<RemoteFeatures>(stages.features);
          },
          plan.stages)) {
    return OfRemote(plan);
  }
  const absl::StatusOr<KernelExpression> expression =
      KernelExpression::Parse(provenance.kernel_text);
  if (!expression.ok() || expression->NeedsScale() || expression->NeedsMedian()) {
    return std::nullopt;
  }
  if (!plan.input.projection.empty()) return std::nullopt;
  Residual residual;
  const KernelProgram compiled = KernelProgram::Compile(*expression);
  residual.kernel_ =
      std::visit([&](const auto& stages) { return AsPlanned(stages, compiled); }, plan.stages);
  double factor = 0;
  if (!expression->IsScaledLinear(&factor)) factor = 0;
  const std::optional<Rounding> rounding =
      std::visit([&](const auto& stages) { return RoundingOf(stages, residual.kernel_, factor); },
                 plan.stages);
  if (!rounding.has_value() || !std::isfinite(rounding->unit * rounding->largest))
    return std::nullopt;
  residual.input_ = {.columns = plan.input.columns,
                     .shift = plan.input.shift,
                     .scale = plan.input.scale,
                     .projection = {}};
  residual.serving_type_ = plan.serving_type();
  residual.output_columns_ = plan.output_columns();
  residual.rounding_ = *rounding;
  return residual;
}

std::optional<Residual> Residual::OfRemote(const Plan& plan) {
  const std::optional<Rounding> rounding =
      std::visit([](const auto& stages) { return RemoteRounding(stages); }, plan.stages);
  if (!rounding.has_value() || !std::isfinite(rounding->unit * rounding->largest)) {
    return std::nullopt;
  }
  Residual residual;
  residual.is_remote_ = true;
  residual.serving_type_ = plan.serving_type();
  residual.output_columns_ = plan.output_columns();
  residual.rounding_ = *rounding;
  return residual;
}

// Returns the rows as the engine sees them: rounded to the serving type after the input stage.
Matrix<double> Residual::AsServed(const ExamplesView& rows) const {
  Matrix<double> wide = Matrix<double>::Uninit(rows.rows(), rows.columns());
  for (int64_t i = 0; i < rows.rows(); ++i) rows.CopyRow(i, wide.row(i));
  Matrix<double> x = AfterInputStage(input_, wide.view());
  if (serving_type_ == FloatType::kFloat64) return x;
  for (int64_t k = 0; k < x.size(); ++k) x.data()[k] = static_cast<float>(x.data()[k]);
  return x;
}

double Residual::FeatureError(const double* x, double squared_norm, double self) const {
  if (rounding_.of_shares) {
    double error = rounding_.sums * std::sqrt(self);
    if (rounding_.kernel.has_value()) {
      error = std::max(error, rounding_.values * rounding_.kernel->ScaledOf(x, squared_norm, self));
    }
    return rounding_.unit * error + rounding_.lost;
  }
  const double largest = std::sqrt(self * rounding_.largest);
  double value = kRoundings * largest;
  if (rounding_.kernel.has_value()) {
    value = std::max(value, rounding_.kernel->Of(x, squared_norm, largest));
  }
  // A folded kernel maps a row of zeros to features that are exactly 0, so rounding loses nothing.
  const bool is_zero = x != nullptr && IsZeroRow(x, input_.columns);
  return rounding_.unit * value + (is_zero ? 0 : rounding_.lost);
}

double Residual::Allowance(double feature_error, double self) const {
  if (rounding_.of_shares) {
    const double least = rounding_.sums * rounding_.unit;
    const double root = std::sqrt(self);
    const double sum = feature_error + least * root;
    return 2 * (root + feature_error) * feature_error + sum * sum / (2 * least);
  }
  const double least = kRoundings * rounding_.unit * std::sqrt(rounding_.largest);
  const double square = feature_error * feature_error;
  return 2 * std::sqrt(self) * feature_error + square + square * (2 / least + 1);
}

double Residual::Kept(const void* features, int64_t i) const {
  const int64_t begin = i * output_columns_;
  return serving_type_ == FloatType::kFloat32
             ? SquaredNorm(static_cast<const float*>(features) + begin, output_columns_)
             : SquaredNorm(static_cast<const double*>(features) + begin, output_columns_);
}

void Residual::ComputeRemote(const ExamplesView& rows, const void* features, double* residuals,
                             double* allowances) const {
  std::vector<double> row(static_cast<size_t>(rows.columns()));
  for (int64_t i = 0; i < rows.rows(); ++i) {
    rows.CopyRow(i, row.data());
    const double self = std::max(0.0, row.back());
    const double left = self - Kept(features, i);
    const double allowance = Allowance(FeatureError(nullptr, 0, self), self);
    const bool is_unknown = row.back() < 0 || left < -allowance;
    residuals[i] = is_unknown ? self : std::max(0.0, left);
    if (allowances != nullptr) allowances[i] = is_unknown ? kInfinity : allowance;
  }
}

// Returns a(x), with the error of K(x, x), which is computed in float64.
double Residual::AllowanceOf(const double* x, double squared_norm, double self) const {
  const double allowance = Allowance(FeatureError(x, squared_norm, self), self);
  if (!rounding_.of_shares || !rounding_.kernel.has_value()) return allowance;
  return allowance + 0x1p-53 * rounding_.kernel->SelfError(x, squared_norm);
}

Residual::Seen Residual::See(const ExamplesView& rows) const {
  Seen seen;
  if (const StringsView* strings = rows.strings()) {
    seen.x = SquaresOf(kernel_, strings->rows,
                       [&](int64_t i) -> const std::string& { return (*strings)[i]; });
    seen.norms.assign(static_cast<size_t>(strings->rows), 0.0);
    seen.self = StringDiagonal(kernel_, seen.x.view());
    return seen;
  }
  seen.x = AsServed(rows);
  seen.norms = NormsOf(seen.x.view());
  seen.self = KernelDiagonal(kernel_, seen.x.view(), seen.norms);
  // Negative values are rounding errors. They become 0, because roots are taken of the result.
  if (rounding_.of_shares) {
    for (double& self : seen.self) self = std::max(0.0, self);
  }
  return seen;
}

void Residual::Compute(const ExamplesView& rows, const void* features, double* residuals,
                       double* allowances) const {
  if (is_remote_) return ComputeRemote(rows, features, residuals, allowances);
  for (int64_t begin = 0; begin < rows.rows(); begin += kTileRows) {
    const Seen seen = See(rows.Slice(begin, std::min(kTileRows, rows.rows() - begin)));
    for (int64_t i = 0; i < seen.x.rows(); ++i) {
      const double* x = seen.x.row(i);
      const double self = seen.self[i];
      const bool is_lost = IsLostToUnderflow(x, seen.x.cols(), self);
      residuals[begin + i] = std::max(0.0, is_lost ? self : self - Kept(features, begin + i));
      if (allowances == nullptr) continue;
      allowances[begin + i] = is_lost ? kInfinity : AllowanceOf(x, seen.norms[i], self);
    }
  }
}

void Residual::Lengths(const ExamplesView& rows, double* self, double* rounding) const {
  if (is_remote_) {
    std::vector<double> row(static_cast<size_t>(rows.columns()));
    for (int64_t i = 0; i < rows.rows(); ++i) {
      rows.CopyRow(i, row.data());
      self[i] = std::max(0.0, row.back());
      rounding[i] = self[i] > 0 ? FeatureError(nullptr, 0, self[i]) / std::sqrt(self[i]) : 0;
    }
    return;
  }
  for (int64_t begin = 0; begin < rows.rows(); begin += kTileRows) {
    const Seen seen = See(rows.Slice(begin, std::min(kTileRows, rows.rows() - begin)));
    std::copy(seen.self.begin(), seen.self.end(), self + begin);
    for (int64_t i = 0; i < seen.x.rows(); ++i) {
      const double error = FeatureError(seen.x.row(i), seen.norms[i], seen.self[i]);
      rounding[begin + i] = error > 0 ? error / std::sqrt(seen.self[i]) : 0;
    }
  }
}

}  // namespace phimap
