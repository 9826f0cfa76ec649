#include "core/mapping/build/theorem.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/kernel/call_syntax.h"
#include "core/mapping/builder/built_mapping.h"
#include "core/mapping/projection/projection_mappings.h"
#include "core/status/check.h"

namespace phimap {
namespace {

// Returns the addition to the theorem if the kernel is evaluated after a projection.
std::string ProjectedText(const MappingSpec& mapping) {
  const double pairs = static_cast<double>(mapping.landmarks) * kTheoremRows;
  return absl::StrCat(
      ". All of it of a kernel after a projection ±1 to ", mapping.input_dimensions,
      " columns, which by Achlioptas, McSherry, Schölkopf 2001, Theorem 6, keeps the squared "
      "distances of the landmarks from 1,000 rows within 1 ± e with probability 0.95, ",
      DistortionText(mapping.input_dimensions, kTheoremDelta / pairs));
}

// Returns text about the landmarks that the rank tolerance dropped.
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

// Returns "at 512 the 95 % quantile of ρ(x)/K(x, x) over the 1000 rows that decide is 0.0097".
std::string QuantileText(const LandmarkGrowth& growth) {
  return absl::StrFormat(
      "at %d the 95 %% quantile of ρ(x)/K(x, x) over the %d rows that decide is %.3g",
      growth.landmarks, growth.deciding_rows, growth.quantile_95);
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

}  // namespace

std::string GrowthText(const MappingSpec& mapping, const LandmarkGrowth& growth) {
  std::string text = absl::StrCat(". The number of landmarks was found by the build, which adds ",
                                  kGrowthBlock, " at a time until ", NumberToText(mapping.residual),
                                  " is reached: ", QuantileText(growth),
                                  "; the certificate is measured on other rows");
  if (mapping.policy->carries_margin_theorems) {
    text +=
        ". Of a number that is found so the theorem holds for γ, ε and δ that were chosen before "
        "the "
        "build, with δ counted over all builds, not over those that stop at this number: the "
        "separator is in the span of the first landmarks that suffice for it, and so in that of "
        "more";
  } else if (mapping.policy->theorem_is_of_pool) {
    text +=
        ". Of a number that is found so the theorem holds for r and ε that were chosen before the "
        "build, on average over all builds, not over those that stop at this number: more "
        "landmarks "
        "never leave more";
  }
  return text;
}

std::string GrowthLimitText(const MappingSpec& mapping, const LandmarkGrowth& growth) {
  absl::string_view limit;
  switch (growth.end) {
    case LandmarkGrowth::End::kReached:
      PHIMAP_CHECK(false);
    case LandmarkGrowth::End::kCandidates:
      limit = growth.landmarks == mapping.landmarks
                  ? "`most` came first, so allow more landmarks or a larger residual"
                  : "the pool has no more rows, so stream more rows, allow more pool_rows or a "
                    "larger residual";
      break;
    case LandmarkGrowth::End::kRank:
      limit =
          "nothing is left to add, because the rest of each of these rows is within the rank "
          "tolerance; serving_type=float64 has a smaller one";
      break;
  }
  return absl::StrCat("landmarks=auto(…) did not reach a residual of ",
                      NumberToText(mapping.residual), ": ", QuantileText(growth), "; ", limit);
}

std::string TheoremScopeOf(const MappingSpec& mapping, const ScopeFacts& facts) {
  if (!mapping.kind->theorem_is_of_uniform) return std::string(mapping.kind->theorem_scope);
  if (mapping.policy->carries_margin_theorems) return UniformScope(facts);
  if (!mapping.policy->theorem_is_of_pool) return "";
  return absl::StrCat("the ", facts.pool_rows,
                      " rows of this stream that the landmarks were chosen from",
                      facts.landmarks != nullptr ? CutText(*facts.landmarks) : "");
}

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

}  // namespace phimap
