#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/kernel/leaf/columns.h"
#include "core/kernel/leaf_kernel.h"
#include "core/random/stream_ids.h"

namespace phimap {
namespace {

constexpr Parameter kMaternParameters[] = {
    {.name = "nu",
     .type = ParameterType::kNumber,
     .default_text = "1.5",
     .line = "ν, the smoothness: 0.5, 1.5 or 2.5"},
    {.name = "length_scale",
     .type = ParameterType::kNumber,
     .default_text = "1",
     .least = 0,
     .above_least = true,
     .unit = "units of the inputs",
     .line = "ℓ, the distance over which similarity decays"},
    kScalesParameter,
    kColumnsParameter,
};

// Returns 2ν.
int32_t OrderOf(const ParameterValues& values) {
  return static_cast<int32_t>(2 * values.Number("nu"));
}

absl::Status CheckMatern(const ParsedCall& call, ParameterValues& values) {
  const double nu = values.Number("nu");
  if (nu == 0.5 || nu == 1.5 || nu == 2.5) return CheckColumnChoice(call, values);
  return ExpressionError(values.Argument("nu").value_column,
                         absl::StrCat("nu of matern is 0.5, 1.5 or 2.5, got ", NumberToText(nu)),
                         "nu");
}

void CompileMatern(const ParameterValues& values, KernelEmitter& emitter) {
  const double length = values.Number("length_scale");
  // e^{−r} is √(r²) in its exponent, whose slope is infinite at r² = 0. There, the error u·‖x‖² of
  // ‖x‖² + ‖y‖² − 2xᵀy would change the kernel by √u·‖x‖/ℓ, and by e⁻¹·O(p·u) at most if r² is a
  // sum of p squares.
  emitter.Emit(OrderOf(values) == 1 ? SquaredDifferencesOp(values, emitter)
                                    : SquaredDistanceOp(values, emitter));
  emitter.Emit({.code = KernelOpCode::kScale, .a = OrderOf(values) / length / length});
  emitter.Emit({.code = KernelOpCode::kMatern, .n = OrderOf(values)});
}

// Returns the scale 1/(ℓ√(u/2ν)) of a frequency ω. Here u is the sum of the squares of 2ν
// independent normal numbers. With a normal number z, z times this scale has Student's t
// distribution.
double FrequencyScale(const ParameterValues& values, uint64_t seed, int64_t row) {
  const RandomStream normals(seed, StreamId::kFourierScales);
  const int32_t order = OrderOf(values);
  double sum = 0;
  for (int32_t i = 0; i < order; ++i) {
    const double z = normals.Normal(static_cast<uint64_t>(row * order + i));
    sum += z * z;
  }
  return 1 / (values.Number("length_scale") * std::sqrt(sum / order));
}

// With r = √(2ν·D)/ℓ, dK/dD is dK/dr·ν/(ℓ²·r).
double MaternSlope(const ParameterValues& values, double distance) {
  const double length = values.Number("length_scale");
  const double rate = values.Number("nu") / length / length;
  const double r = std::sqrt(2 * rate * distance);
  switch (OrderOf(values)) {
    case 1:
      return r == 0 ? 0 : -rate / r * std::exp(-r);
    case 3:
      return -rate * std::exp(-r);
    default:
      return -rate / 3 * (1 + r) * std::exp(-r);
  }
}

constexpr DistanceForm kMaternDistance = {.slope = MaternSlope};

constexpr FourierLaw kMaternLaw = {
    .numbers = FourierLaw::Numbers::kNormal,
    .row_scale = FrequencyScale,
    .column_factor = ColumnFactor,
    .numbers_of_row = 5,
};

}  // namespace

extern const LeafKernel kMaternKernel;
constinit const LeafKernel kMaternKernel = {
    .name = "matern",
    .formula = "M_ν(√(2ν)‖x−y‖/ℓ): e^{−r}, (1 + r)e^{−r}, (1 + r + r²/3)e^{−r}",
    .line = "smoother than laplacian, rougher than rbf; a common choice for regression",
    .parameters = kMaternParameters,
    .check = CheckMatern,
    .compile = CompileMatern,
    .check_columns =
        [](const ParameterValues& values, int64_t columns) {
          return CheckColumnsOfChoice("matern", values, columns);
        },
    .is_translation_invariant = true,
    .survives_projection = SurvivesOnWholeRows,
    .fourier = &kMaternLaw,
    .distance_form = &kMaternDistance,
};

}  // namespace phimap
