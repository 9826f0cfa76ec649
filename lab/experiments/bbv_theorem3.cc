#include "lab/experiments/bbv_theorem3.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status/status_macros.h"
#include "core/theory/cosine_law.h"
#include "core/theory/landmark_bounds.h"
#include "core/theory/projection_bounds.h"
#include "lab/experiments/margin_draws.h"
#include "lab/statistics.h"

namespace phimap::lab {
namespace {

// Numbers of dimensions at which F3 is measured, as fractions of the number that the exact law
// requires.
constexpr double kProjectionFractions[] = {0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 1};
constexpr double kControlFraction = 0.05;
// Smallest share of lost examples, by the law, at which the law is judged. At a smaller share, a
// draw may lose no example.
constexpr double kFrequent = 0.05;

double Share(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

// Results of all draws of F3 at one number of dimensions.
struct ProjectionPoint {
  int64_t dimensions = 0;
  std::vector<double> by_w;
  std::vector<double> by_half;

  int64_t Kept(double error) const {
    return std::count_if(by_half.begin(), by_half.end(), [&](double e) { return e <= error; });
  }
};

struct ProjectionStudy {
  int64_t landmarks = 0;
  int64_t exact = 0;
  std::vector<ProjectionPoint> points;
};

absl::StatusOr<ProjectionStudy> RunProjections(const MarginDistribution& sphere,
                                               const Options& options) {
  ProjectionStudy study;
  study.landmarks = LiteralLandmarks(sphere.margin, sphere.error / 2, sphere.delta / 2).value();
  study.exact = F3Dimensions(Tier::kExact, sphere.margin, sphere.error, sphere.delta).value();
  // The seeds from this run on follow those of all runs of F2.
  int64_t run = 500'000;
  for (const double fraction : kProjectionFractions) {
    if (options.quick && fraction != kControlFraction && fraction != 1) continue;
    ProjectionPoint point{.dimensions = std::lround(fraction * static_cast<double>(study.exact)),
                          .by_w = {},
                          .by_half = {}};
    const int64_t draws = fraction == 1 ? options.Runs(200, 5) : options.Runs(60, 8);
    for (int64_t t = 0; t < draws; ++t) {
      PHIMAP_ASSIGN_OR_RETURN(
          const ProjectionOutcome outcome,
          DrawF3(sphere, study.landmarks, point.dimensions, options.Seed(run++)));
      point.by_w.push_back(outcome.by_w);
      point.by_half.push_back(outcome.by_half);
    }
    study.points.push_back(std::move(point));
  }
  return study;
}

// Returns the share of the points whose margin by w' is γ/2.
double HalfMarginShare(const MarginDistribution& sphere) {
  double share = 0;
  for (int64_t i = 0; i < sphere.points.rows(); ++i) {
    if (sphere.points(i, sphere.points.cols() - 1) == 0) share += sphere.masses[i];
  }
  return share;
}

double LostByLaw(const MarginDistribution& sphere, int64_t dimensions) {
  return HalfMarginShare(sphere) * CosineBelow(dimensions, sphere.margin / 2, sphere.margin / 4);
}

void AddProjectionTable(const MarginDistribution& sphere, const ProjectionStudy& study,
                        Results& results) {
  Table& table = results.AddTable(
      "projections",
      {"dimensions", "of_exact", "draws", "error by w", "error by w'", "standard error by w'",
       "law of w'", "draws that keep", "kept_share", "kept_low", "kept_high"},
      absl::StrFormat(
          "F3 on the sphere, on %d landmarks: the share of the examples whose margin in the "
          "features is under γ/4 = 0.125 (mean over the draws), and the number of draws in which "
          "the error of w' is at most ε = 0.1. The vector w has margin γ; w' has margin γ/2, which "
          "is all that the proof guarantees after F2. The law is that of the cosine after a "
          "Gaussian projection.",
          study.landmarks));
  for (const ProjectionPoint& point : study.points) {
    const auto draws = static_cast<int64_t>(point.by_half.size());
    const int64_t kept = point.Kept(sphere.error);
    const Interval interval = ShareInterval(kept, draws);
    table.Add({point.dimensions, Share(point.dimensions, study.exact), draws, Mean(point.by_w),
               Mean(point.by_half), StandardError(point.by_half),
               LostByLaw(sphere, point.dimensions), kept, Share(kept, draws), interval.low,
               interval.high});
  }
}

void JudgeTheorem3(const MarginDistribution& sphere, const ProjectionStudy& study,
                   Results& results) {
  const ProjectionPoint& full = study.points.back();
  const auto draws = static_cast<int64_t>(full.by_half.size());
  const int64_t kept = full.Kept(sphere.error);
  const auto tier = [&](Tier t) {
    return F3Dimensions(t, sphere.margin, sphere.error, sphere.delta).value();
  };
  results.Judge(
      {.claim = absl::StrFormat(
           "Theorem 3: F3 keeps γ/4 with an error of at most ε at the exact law's %d dimensions, "
           "on the literal %d landmarks; no map can have the literal %d or the derived %d "
           "dimensions, because they are more than there are landmarks",
           full.dimensions, study.landmarks, tier(Tier::kLiteral), tier(Tier::kDerived)),
       .printed = "",
       .measured =
           absl::StrFormat("%d of %d, by a w' that has margin γ/2 only; largest error %.4f", kept,
                           draws, *std::max_element(full.by_half.begin(), full.by_half.end())),
       .rule = absl::StrCat("at least 0.95 of ", draws, " draws"),
       .agrees =
           static_cast<double>(kept) >= (1 - sphere.delta) * static_cast<double>(draws) - 1e-9});
}

// Checks the proof's bound on the probability that F3 reduces the margin of a given example to
// below γ/4.
void JudgeEachExample(const MarginDistribution& sphere, const ProjectionPoint& full,
                      Results& results) {
  const double each = sphere.error * sphere.delta / 4;
  const double mean = Mean(full.by_half);
  const double sigma = StandardError(full.by_half);
  results.Judge({.claim = "Proof of Theorem 3: the second step, a random projection, reduces the "
                          "margin of an example to below γ/4 with probability at most εδ/4 = "
                          "0.00125",
                 .printed = "εδ/4",
                 .measured = absl::StrFormat("%.5f at %d dimensions, standard error %.5f", mean,
                                             full.dimensions, sigma),
                 .rule = absl::StrFormat("the share of such examples is at most 5 standard errors "
                                         "over εδ/4; %d draws of 1,000 examples",
                                         full.by_half.size()),
                 .agrees = mean <= each + 5 * sigma});
}

// Judges the law of the cosine at fewer dimensions. There losses are not rare, so the standard
// error of their share is meaningful.
void JudgeCosineLaw(const MarginDistribution& sphere, const ProjectionStudy& study,
                    Results& results) {
  double worst = 0;
  int64_t judged = 0;
  for (const ProjectionPoint& point : study.points) {
    const double law = LostByLaw(sphere, point.dimensions);
    if (law < kFrequent) continue;
    ++judged;
    const double sigma = StandardError(point.by_half);
    worst = std::max(worst, std::abs(Mean(point.by_half) - law) / sigma);
  }
  results.Judge(
      {.claim = "With fewer dimensions, the share of examples whose margin F3 reduces to below γ/4 "
                "follows the exact law of the cosine",
       .printed = "",
       .measured =
           absl::StrFormat("farthest of %d numbers of dimensions: %.1f sigma", judged, worst),
       .rule = absl::StrFormat("within 5 standard errors over %d draws, wherever the law is 0.05 "
                               "or more",
                               study.points[0].by_half.size()),
       .agrees = judged > 0 && worst <= 5});
}

// Checks that the verdict can fail: F3 with a twentieth of the dimensions must lose the margin.
void JudgeControl(const MarginDistribution& sphere, const ProjectionStudy& study,
                  Results& results) {
  const ProjectionPoint* control = nullptr;
  for (const ProjectionPoint& point : study.points) {
    if (point.dimensions == std::lround(kControlFraction * static_cast<double>(study.exact))) {
      control = &point;
    }
  }
  const auto of = static_cast<int64_t>(control->by_half.size());
  const int64_t lost = of - control->Kept(sphere.error);
  results.Judge({.claim =
                     "Control: the verdict on Theorem 3 can reject, because with a twentieth of "
                     "the exact law's dimensions F3 does not keep γ/4",
                 .printed = "",
                 .measured = absl::StrFormat("%d of %d draws have an error over ε at %d dimensions",
                                             lost, of, control->dimensions),
                 .rule = "more than half of the draws",
                 .agrees = 2 * lost > of});
}

}  // namespace

absl::Status RunTheorem3(const MarginDistribution& sphere, const Options& options,
                         Results& results) {
  PHIMAP_ASSIGN_OR_RETURN(const ProjectionStudy study, RunProjections(sphere, options));
  AddProjectionTable(sphere, study, results);
  JudgeTheorem3(sphere, study, results);
  JudgeEachExample(sphere, study.points.back(), results);
  JudgeCosineLaw(sphere, study, results);
  JudgeControl(sphere, study, results);
  return absl::OkStatus();
}

}  // namespace phimap::lab
