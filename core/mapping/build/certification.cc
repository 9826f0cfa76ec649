#include "core/mapping/build/certification.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/certificate/measurement.h"
#include "core/certificate/spectrum.h"
#include "core/kernel/kernel_block.h"
#include "core/landmark/count_rule.h"
#include "core/mapping/builder_parts/built_mapping.h"
#include "core/mapping/builder_parts/landmark_factor.h"
#include "core/mapping/projection/projection_mappings.h"
#include "core/mapping/spec/mapping_spec.h"
#include "core/plan/plan.h"
#include "core/plan/residual.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Facts that determine for which rows a theorem holds.
struct ScopeFacts {
  // Whether gamma, or the scaling of columns, was taken from the stream.
  bool gamma_of_stream = false;
  bool scaling_of_stream = false;
  int64_t pool_rows = 0;
  // The factored landmarks; null in a mapping without a factor.
  const LandmarkFactor* landmarks = nullptr;
};

// Text for a kernel that is evaluated after a projection.
std::string ProjectedText(const MappingSpec& mapping) {
  const double pairs = static_cast<double>(mapping.landmarks) * kTheoremRows;
  return absl::StrCat(
      ". All of it of a kernel after a projection ±1 to ", mapping.input_dimensions,
      " columns, which by Achlioptas, McSherry, Schölkopf 2001, Theorem 6, keeps the squared "
      "distances of the landmarks from 1,000 rows within 1 ± e with probability 0.95, ",
      DistortionText(mapping.input_dimensions, kTheoremDelta / pairs));
}

// Text about the landmarks that the rank tolerance dropped.
std::string CutText(const LandmarkFactor& landmarks) {
  const auto cut = static_cast<int64_t>(landmarks.cholesky.dropped.size());
  const int64_t all = landmarks.rank() + cut + landmarks.zero_landmarks;
  std::string text = absl::StrFormat(
      "; up to a share of about %.3g of each landmark's own K(x, x), by which %d of %d were cut",
      landmarks.tolerance, cut, all);
  if (landmarks.zero_landmarks > 0) {
    absl::StrAppend(&text, " and ", landmarks.zero_landmarks,
                    " whose K(x, x) is nothing but rounding");
  }
  return text;
}

std::string UniformScope(const ScopeFacts& facts) {
  std::string text;
  if (!facts.gamma_of_stream && !facts.scaling_of_stream) {
    text =
        "the distribution that the stream's rows were drawn from, independently, if the kernel was "
        "chosen without them: nothing of it, and no scaling, was taken from them here";
  } else {
    const absl::string_view taken = !facts.scaling_of_stream ? "gamma was"
                                    : facts.gamma_of_stream  ? "gamma and scaling were"
                                                             : "scaling was";
    text =
        absl::StrCat("the stream's own empirical distribution and the kernel as resolved: ", taken,
                     " taken from the same rows. Of rows to come it is proven only where "
                     "kernel and scaling were fixed before the stream");
  }
  if (facts.landmarks != nullptr) text += CutText(*facts.landmarks);
  return text;
}

// Returns the text that follows the theorem if a rule found the number of landmarks: how the rule
// found it, and in which sense the theorem then holds.
std::string FoundCountText(const LandmarkPolicy& policy, const LandmarkCount& count) {
  std::string text = absl::StrCat(". The number of landmarks was found by the build, which ",
                                  count.how, "; the certificate is measured on other rows");
  if (policy.carries_margin_theorems) {
    text +=
        ". The theorem then holds for γ, ε and δ that were chosen before the build, where δ is a "
        "probability over all builds, not over those that stop at this number: the separator is in "
        "the span of the first landmarks that suffice for it, and so in the span of more";
  } else if (policy.theorem_is_of_pool) {
    text +=
        ". The theorem then holds for r and ε that were chosen before the build, on average over "
        "all builds, not over those that stop at this number: more landmarks never leave a larger "
        "residual";
  }
  return text;
}

// Returns the rows for which the theorem of TheoremOf holds, and what the rank tolerance cut off.
// Returns an empty text if no theorem applies.
std::string TheoremScopeOf(const MappingSpec& mapping, const ScopeFacts& facts) {
  if (!mapping.kind->theorem_is_of_uniform) return std::string(mapping.kind->theorem_scope);
  if (mapping.policy->carries_margin_theorems) return UniformScope(facts);
  if (!mapping.policy->theorem_is_of_pool) return "";
  return absl::StrCat("the ", facts.pool_rows,
                      " rows of this stream that the landmarks were chosen from",
                      facts.landmarks != nullptr ? CutText(*facts.landmarks) : "");
}

// Returns the theorem that applies to the mapping: its source, its statement and, if the mapping's
// parameters determine them, its numbers (docs/maths.md).
std::string TheoremOf(const TheoremTask& task) {
  const MappingSpec& mapping = task.spec;
  std::string text = task.built.theorem;
  if (mapping.kind->theorem_is_of_uniform && !mapping.policy->carries_margin_theorems) {
    text = std::string(mapping.policy->theorem);
  } else if (mapping.kind->theorem != nullptr) {
    text = mapping.kind->theorem(task);
  }
  if (mapping.input_dimensions > 0) text += ProjectedText(mapping);
  return text;
}

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

absl::Status AddSpectrum(const KernelAccess& kernel, const BuiltMapping& mapping,
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
      mapping.served, {.spec_text = spec.ToText(), .kernel_text = task.kernel.ToText()});
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
