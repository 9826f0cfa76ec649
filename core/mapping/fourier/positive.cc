// positive(dimensions=…): positive random features of exp(γ·xᵀy), the kernel of attention
// (Choromanski and others, "Rethinking attention with performers", 2021).
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/leaf_kernel.h"
#include "core/mapping/builder_parts/built_mapping.h"
#include "core/mapping/fourier/fourier_mapping.h"
#include "core/mapping/spec/build_spec.h"
#include "core/mapping/spec/family.h"
#include "core/random/stream_ids.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr absl::string_view kPositiveParameters[] = {"dimensions", "orthogonal", "held_out_rows",
                                                     "serving_type"};

// The kernel factor·exp(gamma·xᵀy).
struct ExponentialKernel {
  double factor = 1;
  double gamma = 1;
};

std::optional<ExponentialKernel> ExponentialKernelOf(const KernelExpression& kernel) {
  ExponentialKernel found;
  const KernelNode* node = &kernel.root();
  for (; node->kind == KernelNode::Kind::kScaled; node = node->children[0].get()) {
    found.factor *= node->factor;
  }
  if (node->kind != KernelNode::Kind::kExp) return std::nullopt;
  if (!KernelExpression(node->children[0]).IsScaledLinear(&found.gamma)) return std::nullopt;
  if (!(found.factor > 0) || !std::isfinite(found.factor) || !(found.gamma > 0)) {
    return std::nullopt;
  }
  return found;
}

absl::Status CheckExponential(const BuildSpec& spec) {
  if (ExponentialKernelOf(spec.kernel).has_value()) return absl::OkStatus();
  return KernelNotApplicable(
      spec, "requires exp(linear()) or exp(c*linear()) with c > 0, optionally scaled by c > 0");
}

// Returns the program of the m features (m = `dimensions`) for the kernel c·exp(γ·xᵀy). Feature j
// is
//   √(c/m)·exp(√γ·ωⱼᵀx − γ‖x‖²/2)
// with a random vector ωⱼ of normal numbers. The expected value of F(x)·F(y) is the kernel, because
// E exp(ωᵀz) = exp(‖z‖²/2) for every vector z.
//
// The stage holds the row a = ω/(2√γ) and the offset ‖a‖²/2 for each feature. From these it
// computes the whole exponent before it exponentiates:
//   −γ/2·‖x − a‖² + γ·(x·a + ‖a‖²/2) = 2γ·x·a − γ‖x‖²/2 = √γ·ωᵀx − γ‖x‖²/2.
KernelProgram PositiveProgram(const ExponentialKernel& kernel, int64_t dimensions) {
  const double amplitude = std::sqrt(kernel.factor) / std::sqrt(static_cast<double>(dimensions));
  absl::StatusOr<KernelProgram> program =
      KernelProgram::FromOps({{.code = KernelOpCode::kPushSquaredDistance},
                              {.code = KernelOpCode::kScale, .a = -kernel.gamma / 2},
                              {.code = KernelOpCode::kPushShiftedProduct},
                              {.code = KernelOpCode::kScale, .a = kernel.gamma},
                              {.code = KernelOpCode::kAdd},
                              {.code = KernelOpCode::kExp},
                              {.code = KernelOpCode::kScale, .a = amplitude}});
  PHIMAP_CHECK(program.ok());
  return *std::move(program);
}

absl::StatusOr<BuiltMapping> BuildPositive(const BuildSpec& spec, const LandmarkTask& task,
                                           const TileControl& control) {
  const ExponentialKernel kernel = *ExponentialKernelOf(task.kernel);
  StageNumbers stages;
  stages.rows = Matrix<double>::Uninit(spec.mapping.dimensions, task.input.output_columns());
  if (spec.mapping.orthogonal) {
    PHIMAP_RETURN_IF_ERROR(FillOrthogonalNormalRows(spec.seed, StreamId::kPositiveLengths,
                                                    stages.rows.view(),
                                                    [&](double f) { return control(f); }));
  } else {
    FillNormalRows(spec.seed, StreamId::kPositiveRows, stages.rows.view());
  }
  for (int64_t j = 0; j < stages.rows.rows(); ++j) {
    double square = 0;
    for (int64_t k = 0; k < stages.rows.cols(); ++k) {
      stages.rows(j, k) /= 2 * std::sqrt(kernel.gamma);
      square += stages.rows(j, k) * stages.rows(j, k);
    }
    stages.offsets.push_back(square / 2);
  }
  stages.program = PositiveProgram(kernel, spec.mapping.dimensions);
  BuiltMapping built;
  PHIMAP_RETURN_IF_ERROR(
      EmitPlans({.input = task.input, .serving_type = task.serving_type}, stages, built));
  PHIMAP_RETURN_IF_ERROR(control(1));
  return built;
}

// The cost equals that of Fourier features with a phase, which also have a normal row and an offset
// per feature.
MappingCost CostOfPositive(const MappingShape& shape) {
  static constexpr FourierLaw kNormalRows = {.numbers = FourierLaw::Numbers::kNormal};
  return CostOfFourier({.law = &kNormalRows,
                        .form = FourierForm::kPhase,
                        .orthogonal = shape.spec.mapping.orthogonal,
                        .dimensions = shape.spec.mapping.dimensions,
                        .columns = shape.columns,
                        .serving_type = shape.serving_type});
}

std::string PositiveTheorem(const TheoremTask& task) {
  return absl::StrCat(
      "Choromanski and others 2021, Lemma 2: F(x)·F(y) has the mean K(x, y), and its variance is "
      "K(x, y)²·exp(γ‖x + y‖²)·(1 − exp(−γ‖x + y‖²))/m for m = ",
      task.spec.dimensions,
      task.spec.orthogonal ? " independent frequencies; with orthogonal ones it is smaller "
                             "(Theorem 2 there)"
                           : "",
      ": 0 where x = −y, and large against K(x, y)² where ‖x + y‖ is, even where K(x, y) is small");
}

}  // namespace

extern const Family kPositiveFamily;
constinit const Family kPositiveFamily = {
    .name = "positive",
    .line = "positive random features of exp(linear()): F(x)·F(y) has the mean K(x, y)",
    .parameters = kPositiveParameters,
    .kernels = "exp(linear()) or exp(c*linear()) with c > 0, optionally scaled by c > 0",
    .takes_leaf = [](const LeafKernel&) { return false; },
    .theorem_line = "unbiased, with the variance of Choromanski and others 2021, Lemma 2",
    .theorem_scope = "rows that do not depend on the seed, as they are after scaling",
    .check_kernel = CheckExponential,
    .cost = CostOfPositive,
    .build = BuildPositive,
    .theorem = PositiveTheorem,
};

}  // namespace phimap
