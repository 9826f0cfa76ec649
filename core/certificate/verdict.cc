#include "core/certificate/verdict.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status/check.h"
#include "core/status/words.h"

namespace phimap {
namespace {

using Grade = Verdict::Grade;
using Cause = Verdict::Cause;

constexpr char kEvaluate[] = "phimap evaluate measures a learner on labeled rows";

// A NaN is graded as poor.
Grade GradeOf(double error, double good, double fair) {
  if (error <= good) return Grade::kGood;
  return error <= fair ? Grade::kFair : Grade::kPoor;
}

// "3.2", "45" or "212": two digits, or all before the point.
std::string PercentNumber(double share) {
  return share < 0.0995 ? absl::StrFormat("%.2g", 100 * share)
                        : absl::StrFormat("%.0f", 100 * share);
}

// Why a version without a comparison with the kernel is not judged.
Verdict NotJudged(const Certificate& certificate) {
  if (certificate.held_out_rows < kMinVerdictRows) {
    return {
        .cause = Cause::kTooFewRows,
        .reason = absl::StrCat(certificate.held_out_rows, " held-out rows say nothing, at least ",
                               kMinVerdictRows, " are needed"),
        .advice = absl::StrCat("stream more rows than landmarks; ", kEvaluate)};
  }
  switch (certificate.aim) {
    case Aim::kSimilarities:
      return {
          .cause = Cause::kOtherAim,
          .reason = "features are similarities to landmarks, which are judged by a learner alone",
          .advice = kEvaluate};
    case Aim::kClasses:
      return {.cause = Cause::kOtherAim,
              .reason =
                  "features are for one weight vector of all classes, which is judged by its "
                  "margins alone",
              .advice = kEvaluate};
    case Aim::kDistances:
    case Aim::kInnerProducts:
    case Aim::kUnknown:
      break;
  }
  return {
      .cause = Cause::kNotMeasured,
      .reason = "an earlier release built this version and did not measure what a learner loses",
      .advice = absl::StrCat("build it anew; ", kEvaluate)};
}

// Whether serving in float32 accounts for half of the distance at the λ that it is measured at.
bool CostsHalf(const Certificate& certificate) {
  if (!certificate.serving_distance.has_value()) return false;
  for (const SmootherDistance& smoother : certificate.fidelity->smoothers) {
    if (smoother.lambda == certificate.fidelity->serving_lambda()) {
      return *certificate.serving_distance >= smoother.distance / 2;
    }
  }
  return false;
}

// Whether float32 cut off dimensions that the kernel has.
bool LacksRank(const Certificate& certificate) {
  return certificate.kernel_rank.has_value() && certificate.rank.has_value() &&
         *certificate.rank < *certificate.kernel_rank;
}

// The cause of a grade that is not good.
Cause CauseOf(const Certificate& certificate) {
  if (CostsHalf(certificate) || LacksRank(certificate)) return Cause::kServingType;
  return FewRowsCarry(certificate) ? Cause::kFewRowsCarry : Cause::kTooFewFeatures;
}

// What would bring the features nearer to the kernel. If the landmarks' span holds more of the
// kernel than the features do, dimensions are missing (F3, kpca). The two are of different rows, so
// medians alone may differ by chance.
std::string WhatIsMissing(const Certificate& certificate) {
  if (certificate.landmarks == 0) return "more dimensions reduce it";
  const std::optional<ResidualShare>& outside = certificate.residual_share;
  const Fidelity& fidelity = *certificate.fidelity;
  if (!outside.has_value() || outside->median >= fidelity.self_error_median / 2) {
    return "more landmarks reduce it";
  }
  return outside->quantile_95 < fidelity.self_error_quantile_95 / 2
             ? "more dimensions reduce it"
             : "more dimensions or landmarks reduce it";
}

std::string AdviceOn(Cause cause, const Certificate& certificate) {
  switch (cause) {
    case Cause::kConstantKernel:
      return "scale the inputs or choose other parameters of the kernel, until its values differ";
    case Cause::kServingType:
      return "serve in float64: float32 cut off what differs";
    case Cause::kFewRowsCarry: {
      const std::string few =
          absl::StrFormat("%.2g", std::max(1.0, certificate.effective_rows->kernel));
      return absl::StrCat(
          "about ", few, few == "1" ? " row" : " rows", " of ", certificate.held_out_rows,
          few == "1" ? " carries" : " carry",
          " the kernel's values for pairs of different rows, and more landmarks may not help: "
          "widen "
          "the kernel if it is narrow, or, if a few K(x, x) are much larger than the others, "
          "normalize it or clip or transform the columns with outliers");
    }
    case Cause::kTooFewFeatures:
      return WhatIsMissing(certificate);
    case Cause::kNone:
    case Cause::kTooFewRows:
    case Cause::kNotMeasured:
    case Cause::kOtherAim:
      break;
  }
  return "";
}

// A learner on projected inputs is judged by distances, which is what projections keep.
Verdict OnDistances(const Certificate& certificate) {
  const double error = certificate.fidelity->distance_error_quantile_95;
  Verdict verdict{.grade = GradeOf(error, kGoodDistanceError, kFairDistanceError),
                  .reason = absl::StrFormat(
                      "the squared distances of 95 %% of pairs of new rows are kept within "
                      "%.1f %%",
                      100 * error)};
  if (verdict.grade == Grade::kGood) return verdict;
  verdict.cause = Cause::kTooFewFeatures;
  verdict.advice = AdviceOn(verdict.cause, certificate);
  return verdict;
}

// What a learner loses, in words.
std::string LossText(const Certificate& certificate) {
  const double judged = JudgedDistance(certificate);
  const Fidelity& fidelity = *certificate.fidelity;
  const auto [least, most] = std::minmax_element(
      fidelity.smoothers.begin(), fidelity.smoothers.end(),
      [](const SmootherDistance& a, const SmootherDistance& b) { return a.lambda < b.lambda; });
  const bool is_tuned = judged == fidelity.tuned_distance();
  const double largest = is_tuned ? fidelity.serving_lambda() : most->lambda;
  const std::string differ = absl::StrFormat(
      "on %d new rows a tuned learner's predictions differ by up to %s %% from those on the "
      "kernel itself, at λ = %s of the mean eigenvalue",
      fidelity.rows, PercentNumber(judged),
      // Rounding of the kernel's values may allow for one alone.
      least->lambda == largest ? absl::StrFormat("%.2g", largest)
                               : absl::StrFormat("%.2g to %.2g", least->lambda, largest));
  if (!LacksRank(certificate)) return differ;
  return absl::StrCat("float32 keeps ", *certificate.rank, " of the kernel's ",
                      CountOf(*certificate.kernel_rank, "dimension"), ", though ", differ);
}

// The grade of what a learner loses on rows that were left out of its training.
Grade LeftOutGrade(const Certificate& certificate) {
  if (!certificate.left_out_distance.has_value() || FewRowsCarry(certificate)) return Grade::kGood;
  return GradeOf(*certificate.left_out_distance, kGoodLeftOutDistance, kFairLeftOutDistance);
}

}  // namespace

std::string Verdict::grade_name() const {
  switch (grade) {
    case Grade::kNotJudged:
      return "not judged";
    case Grade::kGood:
      return "good";
    case Grade::kFair:
      return "fair";
    case Grade::kPoor:
      return "poor";
  }
  PHIMAP_CHECK(false);
}

std::string Verdict::ToText() const {
  return absl::StrCat(grade_name(), ": ", reason, advice.empty() ? "" : "; ", advice);
}

bool FewRowsCarry(const Certificate& certificate) {
  constexpr double kSmallShare = 0.25;
  const std::optional<EffectiveRows>& rows = certificate.effective_rows;
  return rows.has_value() && rows->kernel < kMinEffectiveRows &&
         rows->kernel < kSmallShare * static_cast<double>(certificate.held_out_rows);
}

double JudgedDistance(const Certificate& certificate) {
  const double tuned = certificate.fidelity->tuned_distance();
  const double largest = certificate.fidelity->largest_distance();
  return FewRowsCarry(certificate) && !(largest <= kFairDistance) ? largest : tuned;
}

Verdict VerdictOf(const Certificate& certificate) {
  if (!certificate.fidelity.has_value() || certificate.fidelity->rows < kMinVerdictRows) {
    return NotJudged(certificate);
  }
  if (certificate.fidelity->smoothers.empty()) {
    return {.grade = Grade::kPoor,
            .cause = Cause::kConstantKernel,
            .reason =
                "all kernel values of new rows are equal up to rounding, so nothing can be "
                "learned from them",
            .advice = AdviceOn(Cause::kConstantKernel, certificate)};
  }
  if (certificate.aim == Aim::kDistances) return OnDistances(certificate);
  Verdict verdict{.grade = GradeOf(JudgedDistance(certificate), kGoodDistance, kFairDistance),
                  .reason = LossText(certificate)};
  if (const Grade left_out = LeftOutGrade(certificate); left_out > verdict.grade) {
    verdict.grade = left_out;
    verdict.reason = absl::StrFormat(
        "a learner's predictions for rows that it was not trained on differ by %s %% from those "
        "on the kernel itself, at λ = 1",
        PercentNumber(*certificate.left_out_distance));
  }
  if (verdict.grade == Grade::kGood && LacksRank(certificate)) verdict.grade = Grade::kFair;
  if (verdict.grade == Grade::kGood) return verdict;
  verdict.cause = CauseOf(certificate);
  verdict.advice = AdviceOn(verdict.cause, certificate);
  return verdict;
}

}  // namespace phimap
