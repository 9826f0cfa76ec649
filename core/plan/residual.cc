#include "core/plan/residual.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <variant>

#include "absl/strings/match.h"
#include "core/kernel/kernel_evaluator.h"
#include "core/kernel/kernel_expression.h"
#include "core/plan/squared_norm.h"
#include "core/status/check.h"

namespace phimap {
namespace {

double SelfKernel(const KernelProgram& kernel, double squared_norm) {
  double value = 0;
  EvaluateKernel(kernel, &squared_norm, squared_norm, &squared_norm, 1, &value);
  return value;
}

// η, or nothing for stages that are not those of an F2.
template <typename T>
std::optional<double> Eta(const ServingStages<T>& stages, const KernelProgram& kernel,
                          double linear_factor) {
  const auto* features = std::get_if<ProductFeatures<T>>(&stages.features);
  if (features == nullptr || !stages.centre.empty()) return std::nullopt;
  const Matrix<T>& rows = features->rows;
  const double u = std::ldexp(1.0, sizeof(T) == 4 ? -24 : -53);
  if (std::holds_alternative<NoProjection>(stages.projection)) {
    // c·linear, folded: products of p numbers with rows B, of an x with K(x, x) = c‖x‖².
    if (!(linear_factor > 0) || !features->program.is_identity()) return std::nullopt;
    return 4 * u *
           std::sqrt(static_cast<double>(rows.cols()) * SquaredNorm(rows.data(), rows.size()) /
                     linear_factor);
  }
  const auto* triangle = std::get_if<TriangularProjection<T>>(&stages.projection);
  if (triangle == nullptr || !(features->program == kernel)) return std::nullopt;
  double largest = 0;
  for (int64_t i = 0; i < rows.rows(); ++i) {
    largest = std::max(largest, SelfKernel(kernel, SquaredNorm(rows.row(i), rows.cols())));
  }
  return 4 * u *
         std::sqrt(static_cast<double>(triangle->order) * largest *
                   SquaredNorm(triangle->elements.data(), triangle->elements.size()));
}

}  // namespace

std::optional<Residual> Residual::Of(const Plan& plan, const Provenance& provenance) {
  if (!absl::StartsWith(provenance.mapping_text, "f2(")) return std::nullopt;
  const absl::StatusOr<KernelExpression> expression =
      KernelExpression::Parse(provenance.kernel_text);
  if (!expression.ok() || expression->NeedsScale() || expression->NeedsMedian()) {
    return std::nullopt;
  }
  if (!plan.input.projection.empty()) return std::nullopt;
  Residual residual;
  residual.kernel_ = KernelProgram::Compile(*expression);
  double factor = 0;
  if (!expression->IsScaledLinear(&factor)) factor = 0;
  const std::optional<double> eta = std::visit(
      [&](const auto& stages) { return Eta(stages, residual.kernel_, factor); }, plan.stages);
  if (!eta.has_value() || !std::isfinite(*eta)) return std::nullopt;
  residual.shift_ = plan.input.shift;
  residual.scale_ = plan.input.scale;
  residual.serving_type_ = plan.serving_type();
  residual.output_columns_ = plan.output_columns();
  residual.allowance_ = 2 * (2 * *eta + *eta * *eta);
  return residual;
}

// Of the row as the engine sees it: rounded to the serving type after the input stage.
double Residual::SelfSimilarity(const RowsView& rows, int64_t i, std::vector<double>& x) const {
  rows.CopyRow(i, x.data());
  for (size_t k = 0; k < x.size(); ++k) {
    if (!shift_.empty()) x[k] -= shift_[k];
    if (!scale_.empty()) x[k] *= scale_[k];
    if (serving_type_ == FloatType::kFloat32) x[k] = static_cast<float>(x[k]);
  }
  return SelfKernel(kernel_, SquaredNorm(x.data(), rows.columns));
}

void Residual::Compute(const RowsView& rows, const void* features, double* out) const {
  std::vector<double> x(static_cast<size_t>(rows.columns));
  for (int64_t i = 0; i < rows.rows; ++i) {
    const double self = SelfSimilarity(rows, i, x);
    const double kept =
        serving_type_ == FloatType::kFloat32
            ? SquaredNorm(static_cast<const float*>(features) + i * output_columns_,
                          output_columns_)
            : SquaredNorm(static_cast<const double*>(features) + i * output_columns_,
                          output_columns_);
    out[i] = std::max(0.0, self - kept) + allowance_ * self;
  }
}

}  // namespace phimap
