#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/kernel/leaf/columns.h"
#include "core/kernel/leaf/gamma_parameter.h"
#include "core/kernel/leaf_kernel.h"

namespace phimap {
namespace {

constexpr int kMaxPolyDegree = 64;

constexpr Parameter kPolyParameters[] = {
    {.name = "degree",
     .type = ParameterType::kInteger,
     .absent = Parameter::Absent::kRequired,
     .least = 1,
     .largest = kMaxPolyDegree,
     .line = "q, the power"},
    GammaOfProducts("1"),
    {.name = "coef0", .type = ParameterType::kNumber, .default_text = "0", .line = "r, the offset"},
    kColumnsParameter,
};

void CompilePoly(const ParameterValues& values, KernelEmitter& emitter) {
  const auto degree = static_cast<int32_t>(values.Integer("degree"));
  emitter.Emit(ProductOp(values, emitter));
  emitter.Emit(
      {.code = KernelOpCode::kAffine, .a = values.Number("gamma"), .b = values.Number("coef0")});
  if (degree > 1) emitter.Emit({.code = KernelOpCode::kPower, .n = degree});
}

std::string WhyPolyIsIndefinite(const ParameterValues& values) {
  const auto because = [](absl::string_view name, double value) {
    return absl::StrCat("poly with ", name, "=", NumberToText(value),
                        " is not positive semidefinite; expected ", name, " >= 0");
  };
  const double gamma = values.Number("gamma");
  const double coef0 = values.Number("coef0");
  // For even q, (−γxᵀy)^q equals (γxᵀy)^q.
  const bool even = coef0 == 0 && values.Integer("degree") % 2 == 0;
  if (gamma < 0 && !even) return because("gamma", gamma);
  if (coef0 < 0) return because("coef0", coef0);
  return "";
}

// Returns the number of monomials of degree q (of degrees up to q if coef0 is not 0) in the columns
// that the kernel reads.
double DimensionOfPoly(const ParameterValues& values, double columns) {
  constexpr double kLargest = 0x1p40;
  const double taken = CountColumns(values, columns);
  const double choices = values.Number("coef0") != 0 ? taken : taken - 1;
  double count = 1;
  for (int64_t i = 1; i <= values.Integer("degree") && count < kLargest; ++i) {
    count = count * (choices + static_cast<double>(i)) / static_cast<double>(i);
  }
  return count;
}

std::optional<AffinePower> PowerOfPoly(const ParameterValues& values) {
  if (!IsOfWholeRows(values)) return std::nullopt;
  return AffinePower{.gamma = values.Number("gamma"),
                     .coef0 = values.Number("coef0"),
                     .degree = static_cast<int32_t>(values.Integer("degree"))};
}

}  // namespace

extern const LeafKernel kPolyKernel;
constinit const LeafKernel kPolyKernel = {
    .name = "poly",
    .formula = "(γ xᵀy + r)^q",
    .line = "a polynomial of the inner product",
    .parameters = kPolyParameters,
    .check = CheckColumnChoice,
    .compile = CompilePoly,
    .check_columns = [](const ParameterValues& values,
                        int64_t columns) { return CheckColumnsOfChoice("poly", values, columns); },
    .why_indefinite = WhyPolyIsIndefinite,
    .survives_projection = SurvivesOnWholeRows,
    .dimension = DimensionOfPoly,
    .affine_power = PowerOfPoly,
};

}  // namespace phimap
