// fourier(dimensions=…): random Fourier features.
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/leaf_kernel.h"
#include "core/mapping/builder_parts/built_mapping.h"
#include "core/mapping/fourier/fourier_mapping.h"
#include "core/mapping/projection/projection_mappings.h"
#include "core/mapping/spec/build_spec.h"
#include "core/mapping/spec/family.h"
#include "core/plan/plan.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/theory/fourier_bounds.h"

namespace phimap {
namespace {

constexpr absl::string_view kFourierParameters[] = {"dimensions", "form",          "orthogonal",
                                                    "pool_rows",  "held_out_rows", "serving_type"};

absl::Status CheckFrequencies(const MappingSpec& spec) {
  if (spec.form != FourierForm::kSinCos || spec.dimensions % 2 == 0) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kDimensionsOdd, "dimensions",
                   absl::StrCat("form=sincos has a cosine and a sine of each frequency: expected "
                                "an even number, got ",
                                spec.dimensions));
}

bool HasFrequencies(const LeafKernel& leaf) { return leaf.fourier != nullptr; }

bool HasUniformDirections(const LeafKernel& leaf) {
  return HasFrequencies(leaf) && leaf.fourier->numbers == FourierLaw::Numbers::kNormal;
}

absl::Status CheckFourierKernel(const BuildSpec& spec) {
  const std::optional<FourierKernel> kernel = FourierKernelOf(spec.kernel);
  if (!kernel.has_value()) {
    return KernelNotApplicable(spec, absl::StrCat("requires ", LeafKernelNames(HasFrequencies),
                                                  ", optionally scaled by c > 0"));
  }
  if (spec.mapping.orthogonal && !kernel->has_uniform_directions()) {
    return KernelNotApplicable(
        spec, absl::StrCat("with orthogonal=true requires ", LeafKernelNames(HasUniformDirections),
                           ", optionally scaled by c > 0, because frequencies of other kernels "
                           "have no uniform direction"));
  }
  return absl::OkStatus();
}

MappingCost CostOfFourierMapping(const MappingShape& shape) {
  return CostOfFourier({.law = FourierKernelOf(shape.spec.kernel)->law,
                        .form = shape.spec.mapping.form,
                        .orthogonal = shape.spec.mapping.orthogonal,
                        .dimensions = shape.spec.mapping.dimensions,
                        .columns = shape.columns,
                        .serving_type = shape.serving_type});
}

absl::StatusOr<BuiltMapping> BuildFourierMapping(const BuildSpec& spec, const LandmarkTask& task,
                                                 const TileControl& control) {
  BuiltMapping built;
  PlanPair& plans = built;
  PHIMAP_ASSIGN_OR_RETURN(plans,
                          BuildFourier({.input = task.input, .serving_type = task.serving_type},
                                       {.kernel = *FourierKernelOf(task.kernel),
                                        .form = spec.mapping.form,
                                        .orthogonal = spec.mapping.orthogonal,
                                        .dimensions = spec.mapping.dimensions,
                                        .seed = spec.seed},
                                       [&](double f) { return control(f); }));
  return built;
}

std::string DeviationText(double error) {
  return error < 1 ? absl::StrFormat("a = %.2g", error) : "no a below 1";
}

// Returns a clause such as ", a = 0.1 for all rows within 3 of the mean", where `a` bounds the
// error of F(x)·F(y). Returns "" if there is no such bound, because the bound holds only for normal
// frequencies and unscaled columns.
std::string UniformBoundText(const TheoremTask& task) {
  const FourierKernel kernel = *FourierKernelOf(task.kernel);
  if (kernel.law->rbf_gamma == nullptr) return "";
  for (int64_t k = 0; k < task.input.output_columns(); ++k) {
    if (kernel.ColumnFactor(k) != 1) return "";
  }
  double radius = 0;
  const Matrix<double> x = AfterInputStage(task.input, task.held_out);
  for (const double square : SquaredNorms(x.view())) radius = std::max(radius, std::sqrt(square));
  if (!(radius > 0)) return "";
  const double bound = FourierUniformError({.form = task.spec.form,
                                            .dimensions = task.spec.dimensions,
                                            .columns = task.input.columns,
                                            .gamma = kernel.law->rbf_gamma(kernel.values),
                                            .radius = radius},
                                           kTheoremDelta);
  return absl::StrCat(", ", DeviationText(bound),
                      absl::StrFormat(" for all rows within %.3g of the %s, as the held-out rows "
                                      "are",
                                      radius, task.input.shift.empty() ? "origin" : "mean"));
}

std::string FourierTheorem(const TheoremTask& task) {
  if (task.spec.orthogonal) {
    return "Rahimi, Recht 2007: F(x)·F(y) has the mean K(x, y). With orthogonal frequencies (Yu, "
           "Suresh, Choromanski, Holtmann-Rice, Kumar 2016) the terms are not independent, and no "
           "bound of its deviation is given here; its variance may be smaller or larger than with "
           "independent frequencies";
  }
  const FourierForm form = task.spec.form;
  const int64_t dimensions = task.spec.dimensions;
  return absl::StrCat(
      "Rahimi, Recht 2007, by Hoeffding's inequality: for rows x, y fixed in advance |K(x, y) − "
      "F(x)·F(y)| < a·K(x, x) but with probability 2 exp(−D·a²/",
      form == FourierForm::kSinCos ? "4" : "8", "). At D = ", dimensions,
      " with probability 0.95: ", DeviationText(FourierError(form, dimensions, kTheoremDelta)),
      " for one pair, ",
      DeviationText(FourierError(form, dimensions, kTheoremDelta / kTheoremPairs)),
      " for all pairs of 1,000 rows at once", UniformBoundText(task));
}

}  // namespace

extern const Family kFourierFamily;
constinit const Family kFourierFamily = {
    .name = "fourier",
    .line = "random Fourier features: F(x)·F(y) has the mean K(x, y)",
    .parameters = kFourierParameters,
    .kernels = "a leaf kernel whose frequencies are known, optionally scaled by c > 0",
    .takes_leaf = HasFrequencies,
    .theorem_line = "the deviation from K(x, y) is bounded by Hoeffding (Rahimi, Recht 2007)",
    .sees_differences = true,
    .theorem_scope = "rows that do not depend on the seed, as they are after scaling",
    .validate = CheckFrequencies,
    .check_kernel = CheckFourierKernel,
    .cost = CostOfFourierMapping,
    .build = BuildFourierMapping,
    .theorem = FourierTheorem,
};

}  // namespace phimap
