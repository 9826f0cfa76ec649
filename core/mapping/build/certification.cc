#include "core/mapping/build/certification.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/certificate/measurement.h"
#include "core/certificate/spectrum.h"
#include "core/kernel/kernel_block.h"
#include "core/mapping/build/theorem.h"
#include "core/plan/plan.h"
#include "core/plan/residual.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

std::string Theorem(const CertificationTask& task, const BuiltMapping& mapping) {
  if (task.kernel.verdict().indefinite) {
    return "none: the theorems are of positive semidefinite kernels, which this one is not";
  }
  std::string theorem = TheoremOf({.spec = task.spec.mapping,
                                   .built = mapping,
                                   .kernel = task.built_of.kernel,
                                   .input = task.built_of.input,
                                   .held_out = task.sample.held_out.view()});
  if (const LandmarkCount* const count = task.kernel.found_count()) {
    theorem += FoundCountText(*task.spec.mapping.policy, *count);
  }
  return theorem;
}

std::string TheoremScope(const CertificationTask& task, const BuiltMapping& mapping) {
  const BuildSpec& spec = task.spec;
  if (task.kernel.verdict().indefinite) return "";
  return TheoremScopeOf(spec.mapping,
                        {.gamma_of_stream = !spec.remote.has_value() &&
                                            (spec.kernel.NeedsScale() || spec.kernel.NeedsMedian()),
                         .scaling_of_stream = spec.standardize,
                         .pool_rows = task.sample.pool_rows(),
                         .landmarks = spec.mapping.kind->has_factor ? &mapping : nullptr});
}

// Returns a certificate with the facts that are known before anything is measured.
Certificate Described(const CertificationTask& task, const BuiltMapping& mapping) {
  const MappingSpec& spec = task.spec.mapping;
  Certificate certificate;
  certificate.stream_rows = task.sample.stream.rows();
  certificate.pool_rows = task.sample.pool_rows();
  certificate.held_out_rows = task.sample.held_out_rows();
  certificate.landmarks = spec.landmarks;
  certificate.aim = spec.kind->aim;
  if (const LandmarkCount* const count = task.kernel.found_count()) {
    certificate.landmarks = count->landmarks;
  }
  if (spec.has_landmarks()) certificate.policy = std::string(spec.policy->name);
  certificate.theorem = Theorem(task, mapping);
  certificate.theorem_scope = TheoremScope(task, mapping);
  certificate.pool_trace_residual = task.kernel.pool_trace_residual();
  certificate.landmark_rows = task.kernel.RowsOfLandmarks(mapping);
  return certificate;
}

void DescribeFactor(const BuiltMapping& mapping, Certificate& certificate) {
  const int64_t rank = mapping.cholesky.rank();
  certificate.rank = rank;
  certificate.tolerance = mapping.tolerance;
  certificate.largest_residual = mapping.cholesky.largest_residual();
  certificate.trace_residual = mapping.residual_trace / mapping.trace;
  certificate.pivots = mapping.cholesky.diagonal;
  certificate.zero_landmarks = mapping.zero_landmarks;
}

absl::Status AddSpectrum(const BuildKernel& kernel, const BuiltMapping& mapping,
                         BuildProgress& progress, Certificate& certificate) {
  PHIMAP_RETURN_IF_ERROR(progress.Report(BuildStep::kSpectrum, "certificate", 0));
  absl::StatusOr<Spectrum> spectrum =
      kernel.SpectrumOf(mapping, {[&] { return progress.threads(); }, NeverStop});
  if (absl::IsFailedPrecondition(spectrum.status())) return absl::OkStatus();
  PHIMAP_RETURN_IF_ERROR(spectrum.status());
  certificate.spectrum = *std::move(spectrum);
  return absl::OkStatus();
}

std::string NameOfColumn(const BuildSpec& spec, int64_t column) {
  const auto at = static_cast<size_t>(column);
  return at < spec.column_names.size() ? Quoted(spec.column_names[at])
                                       : absl::StrCat(column, " (from 0)");
}

// Returns a warning if the kernel hardly sees a column, because all of its range is small beside
// what another column varies by; otherwise "".
std::string WarningOfScales(const CertificationTask& task) {
  const BuildSpec& spec = task.spec;
  if (spec.standardize || spec.remote.has_value() || task.sample.of_strings() ||
      task.sample.stream.gram() != nullptr || !spec.kernel.SurvivesProjection()) {
    return "";
  }
  constexpr double kHardlySeen = 0.1;
  const ColumnMoments& moments = task.sample.stream.moments();
  const auto range = [&](int64_t j) { return moments.max(j) - moments.min(j); };
  int64_t widest = 0, narrowest = -1;
  for (int64_t j = 0; j < moments.columns(); ++j) {
    if (moments.deviation(j) > moments.deviation(widest)) widest = j;
    if (moments.IsConstant(j)) continue;
    if (narrowest < 0 || range(j) < range(narrowest)) narrowest = j;
  }
  if (narrowest < 0 || !(range(narrowest) < kHardlySeen * moments.deviation(widest))) return "";
  return absl::StrFormat(
      "the kernel hardly sees column %s, whose numbers span %.3g in all, beside column %s, whose "
      "standard deviation is %.3g: unless their units are meant to weigh so, standardize the rows",
      NameOfColumn(spec, narrowest), range(narrowest), NameOfColumn(spec, widest),
      moments.deviation(widest));
}

void AddWarnings(const CertificationTask& task, const BuiltMapping& mapping,
                 Certificate& certificate) {
  std::vector<std::string>& warnings = certificate.warnings;
  warnings = mapping.warnings;
  const std::string& of_kernel = task.kernel.verdict().warning;
  if (!of_kernel.empty()) warnings.push_back(of_kernel);
  if (std::string scales = WarningOfScales(task); !scales.empty()) {
    warnings.push_back(std::move(scales));
  }
  if (const LandmarkCount* const count = task.kernel.found_count();
      count != nullptr && !count->warning.empty()) {
    warnings.push_back(count->warning);
  }
}

// Adds a warning if the held-out rows, which had no part in the choice, leave more than the goal
// for which the number of landmarks was found.
void CompareWithGoal(const CertificationTask& task, Certificate& certificate) {
  const LandmarkCount* const count = task.kernel.found_count();
  const std::optional<ResidualShare>& share = certificate.residual_share;
  const MappingSpec& spec = task.spec.mapping;
  if (count == nullptr || !count->warning.empty() || !share.has_value()) return;
  if (!(share->quantile_95 > spec.goal)) return;
  certificate.warnings.push_back(absl::StrCat(
      "landmarks=", spec.count_rule->name, "(…) was to leave at most ", spec.goal,
      " of K(x, x) on 95 % of the rows, but on ", share->rows,
      " held-out rows, which had no part in the choice, the 95 % quantile is ",
      absl::StrFormat("%.3g", share->quantile_95),
      "; ask for a smaller residual, or stream more rows so that more of them decide"));
}

absl::Status AddMeasurements(const CertificationTask& task, BuiltMapping& mapping,
                             BuildProgress& progress, Certificate& certificate) {
  const MappingSpec& spec = task.spec.mapping;
  const std::optional<Residual> residual = Residual::Of(
      mapping.served, {.mapping_text = spec.ToText(), .kernel_text = task.kernel.ToText()});
  const auto threads = [&] { return progress.threads(); };
  const auto checkpoint = [&](double f) {
    return progress.Report(BuildStep::kMeasurement, "certificate", f);
  };
  return task.kernel.Measure({.served = &mapping.served,
                              .reference = &mapping.reference,
                              .factor = std::as_const(mapping.factor).view(),
                              .features_are_projection = spec.kind->features_are_projection,
                              .residual = residual.has_value() ? &*residual : nullptr,
                              .served_features = &mapping.held_out_features},
                             mapping, {threads, checkpoint}, certificate);
}

}  // namespace

absl::StatusOr<Certificate> Certify(const CertificationTask& task, BuiltMapping& mapping,
                                    BuildProgress& progress) {
  Certificate certificate = Described(task, mapping);
  if (task.spec.mapping.kind->has_factor) {
    DescribeFactor(mapping, certificate);
    PHIMAP_RETURN_IF_ERROR(AddSpectrum(task.kernel, mapping, progress, certificate));
  }
  AddWarnings(task, mapping, certificate);
  certificate.self_check = task.kernel.ReferenceVectors(mapping);
  PHIMAP_RETURN_IF_ERROR(AddMeasurements(task, mapping, progress, certificate));
  CompareWithGoal(task, certificate);
  return certificate;
}

}  // namespace phimap
