// kpca(landmarks=…, dimensions=…): kernel principal components of the landmarks.
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/mapping/builder_parts/built_mapping.h"
#include "core/mapping/f1_f2_f3/landmark_mapping.h"
#include "core/mapping/kernel_pca/kernel_pca.h"
#include "core/mapping/spec/build_spec.h"
#include "core/mapping/spec/family.h"
#include "core/mapping/spec/mapping_spec.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr absl::string_view kPcaParameters[] = {
    "landmarks",        "dimensions", "centred",   "sparsify",      "quantise",    "rounding",
    "input_dimensions", "policy",     "pool_rows", "held_out_rows", "serving_type"};

absl::Status CheckComponents(const MappingSpec& spec) {
  if (spec.dimensions <= spec.landmarks) return absl::OkStatus();
  return ParameterOutOfRange("dimensions", "no more components than landmarks: ", 1, spec.landmarks,
                             spec.dimensions);
}

KernelPcaTask PcaTaskOf(const BuildSpec& spec) {
  return {.components = spec.mapping.dimensions,
          .centred = spec.mapping.centred,
          .seed = spec.seed,
          .gram = {spec.mapping.sparsify, spec.mapping.quantise},
          .rounding = spec.mapping.rounding};
}

MappingCost CostOfPcaMapping(const MappingShape& shape) {
  return CostOfKernelPca(LandmarkShapeOf(shape), PcaTaskOf(shape.spec));
}

constexpr double kPcaDelta = 0.05;

// Returns the number rounded up to three digits.
std::string UpperText(double number) {
  const double step = std::pow(10.0, std::floor(std::log10(number)) - 2);
  return absl::StrFormat("%.3g", number > 0 ? std::ceil(number / step) * step : 0.0);
}

std::string GramText(const GramLoss& gram) {
  const std::string norm = UpperText(gram.error.norm);
  const bool signs = gram.law.sampling != GramSampling::kSparsify;
  std::string text = ". That is of a Gram matrix K̂ ";
  if (gram.law.s > 1) {
    absl::StrAppend(&text, "with one entry in ", gram.law.s, " of K's, ", signs ? "as a sign" : "",
                    signs ? "" : "made as much larger");
  } else {
    absl::StrAppend(&text, "of signs alone");
  }
  absl::StrAppend(
      &text,
      absl::StrFormat(
          ", with ‖K̂ − K‖₂ at most %s but with probability %g (%.3g by Lanczos, and its error by "
          "Kuczyński, Woźniakowski 1992): by Theorem 2 there its components have no more than %s/b "
          "of those of K with eigenvalues less by b. ",
          norm, kNormDoubt, gram.error.norm_from_below, norm),
      "Of K's own but for at most half of their length, up to their sign, by Theorem 4 (c = 2): ",
      gram.apart.empty() ? "none" : absl::StrJoin(gram.apart, ", "),
      absl::StrFormat(". Beforehand 4σ√m = %.3g is known (Theorem 1, which wants more rows), and "
                      "with probability 0.95 %.3g (matrix Bernstein, Tropp 2012)",
                      AmsNormBound(gram.law),
                      BernsteinNormBound(gram.law, kPcaDelta, gram.error.largest_row)));
  return text;
}

// In a centred mapping, weights multiply k(x_i, x) − μ_i, so rounding has an effect even far from
// all landmarks, where k is 0.
std::string RoundingText(const RoundingLoss& rounding, const MappingSpec& mapping, int64_t used) {
  return absl::StrCat(
      ". Of ", rounding.all_weights, " weights rounding at s = ", rounding.scale, " leaves ",
      rounding.weights, ", of ", used,
      " landmarks: √λ·f(x) changes by t or more with probability at most 2 exp(−2(st)²/(m·c²)), m "
      "= ",
      mapping.landmarks, " and c the range of 0 and k(x_i, x)", mapping.centred ? " − μ_i" : "",
      " (section 4 there, by Hoeffding's inequality)");
}

// Returns the theorem for the certificate, with the results of the iteration and the error of
// randomization.
std::string KernelPcaTheorem(const MappingSpec& mapping, const KernelPca& found) {
  const auto components = static_cast<int64_t>(found.eigenvalues.size());
  double share = 0;
  for (const double value : found.eigenvalues) share += value / found.trace;
  std::string text;
  if (found.gram.has_value()) text = GramText(*found.gram);
  if (found.rounding.has_value()) {
    absl::StrAppend(&text, RoundingText(*found.rounding, mapping, found.landmarks));
  }
  const std::string how = absl::StrFormat(
      "%s to a relative residual of %.2g",
      found.products > 0 ? "By orthogonal iteration (Achlioptas, McSherry, Schölkopf 2001)"
                         : "By LAPACK",
      found.residual);
  // The share of K's trace is unknown for a randomized matrix.
  if (found.gram.has_value()) {
    return absl::StrCat("Schölkopf, Smola, Müller 1998, of a randomized matrix: ", components,
                        mapping.centred ? " centred" : "", " components. ", how, text);
  }
  return absl::StrCat(
      "Schölkopf, Smola, Müller 1998: of all maps to ", components, " dimensions that are ",
      mapping.centred ? "affine" : "linear", " in φ, ",
      found.rounding.has_value() ? "the one whose weights were then rounded" : "this one",
      " leaves the least of the landmarks' kernel", mapping.centred ? ", centred," : "",
      " over them: it keeps ", absl::StrFormat("%.4g", 100 * share), " % of its trace. ", how,
      text);
}

absl::StatusOr<BuiltMapping> BuildPcaMapping(const BuildSpec& spec, const LandmarkTask& task,
                                             const TileControl& control) {
  PHIMAP_ASSIGN_OR_RETURN(KernelPca found, BuildMeasuredKernelPca(task, PcaTaskOf(spec), control));
  BuiltMapping built;
  built.theorem = KernelPcaTheorem(spec.mapping, found);
  built.warnings = WarningsOf(found, spec.mapping.dimensions);
  built.gram_mean = found.gram_mean;
  built.used = std::move(found.used);
  built.lost_rank = task.serving_type == FloatType::kFloat32 &&
                    static_cast<int64_t>(found.eigenvalues.size()) < spec.mapping.dimensions;
  static_cast<PlanPair&>(built) = std::move(found);
  return built;
}

double GramShareOfPca(const BuildSpec& spec, const LandmarkTask& task) {
  return StepsOfKernelPca(task, PcaTaskOf(spec)).gram;
}

}  // namespace

extern const Family kKernelPcaFamily;
constinit const Family kKernelPcaFamily = {
    .name = "kpca",
    .earlier_name = "kernel_pca",
    .line = "kernel principal components of the landmarks",
    .parameters = kPcaParameters,
    .kernels = "positive semidefinite kernels",
    .theorem_line =
        "loses the least of all linear maps of this size (Schölkopf, Smola, Müller 1998)",
    .bounded_by_kernel = true,
    .theorem_scope = "the landmarks themselves, not rows to come",
    .validate = CheckComponents,
    .check_kernel = RequireDefinite,
    .centres_kernel = [](const MappingSpec& spec) { return spec.centred; },
    .cost = CostOfPcaMapping,
    .build = BuildPcaMapping,
    .gram_share = GramShareOfPca,
};

}  // namespace phimap
