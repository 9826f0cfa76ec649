// Figure 1 and Theorem 1 of Blum 2005: random separators.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status/status_macros.h"
#include "core/theory/projection_bounds.h"
#include "lab/experiments/experiments.h"
#include "lab/experiments/random_separators.h"
#include "lab/learning.h"
#include "lab/statistics.h"

namespace phimap::lab {
namespace {

constexpr double kPi = std::numbers::pi;
// Number of the first run that trains models. Models have Seed(100,000) and up.
constexpr int64_t kModelRuns = 100'000;

// Returns the distance of a frequency from a probability in standard deviations; 0 if they are
// equal.
double Sigmas(double frequency, double probability, int64_t draws) {
  const double variance = probability * (1 - probability) / static_cast<double>(draws);
  if (variance < 1e-30) return frequency == probability ? 0 : 1e9;
  return std::abs(frequency - probability) / std::sqrt(variance);
}

void JudgeAngles(const SeparatorDraws& drawn, Results& results) {
  Table& table = results.AddTable(
      "angles", {"angle (degrees)", "frequency", "standard deviation", "law", "draws"});
  double worst = 0;
  double other = 0;
  const auto n = static_cast<double>(drawn.separators);
  for (size_t j = 0; j < std::size(kSeparatorDegrees); ++j) {
    const double angle = kSeparatorDegrees[j] * kPi / 180;
    const double law = kSeparatorDegrees[j] / 180.0;
    const double frequency = static_cast<double>(drawn.wrong[j]) / n;
    table.Add(
        {kSeparatorDegrees[j], frequency, std::sqrt(law * (1 - law) / n), law, drawn.separators});
    // At 0 and 180 degrees, h·x is h·w or −h·w, so nothing is random.
    if (kSeparatorDegrees[j] % 180 == 0) continue;
    worst = std::max(worst, Sigmas(frequency, law, drawn.separators));
    if (kSeparatorDegrees[j] == 45) {
      other = Sigmas(frequency, (1 - std::cos(angle)) / 2, drawn.separators);
    }
  }
  results.Judge({.claim = "Figure 1: given h·w >= 0, Pr(h·x <= 0) is α/π at every angle α between "
                          "w and x",
                 .printed = "α/π",
                 .measured = absl::StrFormat("farthest of 11 angles: %.1f sigma", worst),
                 .rule = absl::StrFormat("within 5 sigma at each angle, of %d draws with h·w >= 0",
                                         drawn.separators),
                 .agrees = worst <= 5});
  results.Judge({.claim = "Control: the rule rejects (1 − cos α)/2, which also rises from 0 to 1",
                 .printed = "",
                 .measured = absl::StrFormat("%.0f sigma away at 45 degrees", other),
                 .rule = "more than 5 sigma",
                 .agrees = other > 5});
}

void JudgeErrors(const SeparatorDraws& drawn, Results& results) {
  Table& table =
      results.AddTable("errors", {"margin", "sphere", "sphere standard error", "four points",
                                  "four points standard error", "law", "bound", "draws"});
  double over = -1e9;
  double from_law = 0;
  double doubled = 1e9;
  for (size_t m = 0; m < std::size(kSeparatorMargins); ++m) {
    const double margin = kSeparatorMargins[m];
    const double bound = 0.5 - margin / kPi;
    const double law = std::acos(margin) / kPi;
    for (const std::vector<double>* errors : {&drawn.sphere[m], &drawn.four[m]}) {
      const double mean = Mean(*errors);
      const double sigma = StandardError(*errors);
      over = std::max(over, (mean - bound) / sigma);
      from_law = std::max(from_law, std::abs(mean - law) / sigma);
      doubled = std::min(doubled, (mean - (0.5 - 2 * margin / kPi)) / sigma);
    }
    table.Add({margin, Mean(drawn.sphere[m]), StandardError(drawn.sphere[m]), Mean(drawn.four[m]),
               StandardError(drawn.four[m]), law, bound, drawn.separators});
  }
  const std::string draws =
      absl::StrFormat("%d draws with h·w >= 0, 7 margins, 2 distributions", drawn.separators);
  results.Judge({.claim = "Proof of Theorem 1: the expected error given h·w >= 0 is at most 1/2 − "
                          "γ/π",
                 .printed = "1/2 − γ/π",
                 .measured = absl::StrFormat("largest excess of a mean over it: %.1f sigma", over),
                 .rule = "every mean is at most 5 standard errors over the bound; " + draws,
                 .agrees = over <= 5});
  results.Judge({.claim = "By figure 1 this error is arccos(γ)/π if all examples have the margin γ",
                 .printed = "",
                 .measured = absl::StrFormat("farthest mean: %.1f sigma", from_law),
                 .rule = "within 5 standard errors; " + draws,
                 .agrees = from_law <= 5});
  results.Judge({.claim = "Control: the mean errors exceed 1/2 − 2γ/π",
                 .printed = "",
                 .measured = absl::StrFormat("every mean is at least %.0f sigma over it", doubled),
                 .rule = "each mean is more than 5 standard errors over 1/2 − 2γ/π",
                 .agrees = doubled > 5});
}

// Returns how many draws of Algorithm 1 have an error of at most 1/2 − γ/4. Each draw is a model of
// one round and one draw, with its own seed. A model without a separator counts as a failure.
absl::StatusOr<int64_t> Successes(const Examples& examples, double margin, int64_t draws,
                                  uint64_t seed) {
  const std::string learner = absl::StrCat("weak_learner(rounds=1, draws=1, margin=", margin, ")");
  int64_t successes = 0;
  for (int64_t i = 0; i < draws; ++i) {
    PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Model> model,
                            Trained(learner, examples, seed + static_cast<uint64_t>(i)));
    if (!absl::StartsWith(model->Summary(), "1 ")) continue;
    PHIMAP_ASSIGN_OR_RETURN(const double error, ErrorOn(*model, examples));
    successes += error <= 0.5 - margin / 4 ? 1 : 0;
  }
  return successes;
}

struct SuccessPoint {
  double margin = 0;
  int64_t four = 0;
  int64_t sphere = 0;
  int64_t draws = 0;

  double FourShare() const { return static_cast<double>(four) / static_cast<double>(draws); }
  double SphereShare() const { return static_cast<double>(sphere) / static_cast<double>(draws); }
  // The probability of success on the four points.
  double Law() const { return std::asin(margin) / kPi; }
  double Bound() const { return WeakLearnerSuccess(margin, 0); }
};

absl::StatusOr<std::vector<SuccessPoint>> RunAlgorithm1(const Options& options) {
  const int64_t draws = options.Runs(10'000, 3'000);
  int64_t run = kModelRuns;
  std::vector<SuccessPoint> points;
  for (const double margin : kSeparatorMargins) {
    SuccessPoint point{.margin = margin, .draws = draws};
    PHIMAP_ASSIGN_OR_RETURN(point.four,
                            Successes(FourPointExamples(margin), margin, draws, options.Seed(run)));
    run += draws;
    PHIMAP_ASSIGN_OR_RETURN(point.sphere, Successes(SphereExamples(margin, options.Seed(0)), margin,
                                                    draws, options.Seed(run)));
    run += draws;
    points.push_back(point);
  }
  return points;
}

void AddSuccessTable(const std::vector<SuccessPoint>& points, Results& results) {
  Table& table = results.AddTable(
      "success",
      {"margin", "four points", "low", "high", "law of four points", "sphere", "sphere low",
       "sphere high", "bound", "draws"},
      "The share of random separators with an error of at most 1/2 − γ/4, and its 95 % interval; "
      "the law on the four points, arcsin(γ)/π; and the constant that the proof gives for Ω(γ).");
  for (const SuccessPoint& point : points) {
    const Interval four = ShareInterval(point.four, point.draws);
    const Interval sphere = ShareInterval(point.sphere, point.draws);
    table.Add({point.margin, point.FourShare(), four.low, four.high, point.Law(),
               point.SphereShare(), sphere.low, sphere.high, point.Bound(), point.draws});
  }
}

void JudgeSuccess(const std::vector<SuccessPoint>& points, Results& results) {
  double broken = 0;
  double from_law = 0;
  double doubled = 1e9;
  for (const SuccessPoint& point : points) {
    const double bound = point.Bound();
    const double share = point.FourShare();
    const double twice = 2 * point.Law();
    const double deviation = std::sqrt(bound * (1 - bound) / static_cast<double>(point.draws));
    broken = std::max(broken, (bound - std::min(share, point.SphereShare())) / deviation);
    from_law = std::max(from_law, Sigmas(share, point.Law(), point.draws));
    doubled = std::min(doubled, share < twice ? Sigmas(share, twice, point.draws) : 0);
  }
  const std::string of_draws = absl::StrFormat("%d draws at each of 7 margins", points[0].draws);
  results.Judge(
      {.claim = "Theorem 1: a random separator has an error of at most 1/2 − γ/4 with probability "
                "Ω(γ), 0.0683γ by the proof's own constants",
       .printed = "Ω(γ)",
       .measured = absl::StrFormat("largest shortfall under the bound: %.1f sigma", broken),
       .rule = "on both distributions at most 5 sigma under the bound; " + of_draws,
       .agrees = broken <= 5});
  results.Judge({.claim = "On the four points, the hardest data that we know, a random separator "
                          "has such an error with probability arcsin(γ)/π, which is 4.7 times the "
                          "bound for small γ",
                 .printed = "",
                 .measured = absl::StrFormat("farthest margin: %.1f sigma", from_law),
                 .rule = "within 5 sigma; " + of_draws,
                 .agrees = from_law <= 5});
  results.Judge({.claim = "Control: the rule rejects a probability of 2 arcsin(γ)/π",
                 .printed = "",
                 .measured = absl::StrFormat("at least %.1f sigma under it", doubled),
                 .rule = "more than 3 sigma under it at each margin; " + of_draws,
                 .agrees = doubled > 3});
}

absl::Status Run(const Options& options, Results& results) {
  PHIMAP_ASSIGN_OR_RETURN(const SeparatorDraws drawn, DrawSeparators(options));
  JudgeAngles(drawn, results);
  JudgeErrors(drawn, results);
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<SuccessPoint> points, RunAlgorithm1(options));
  AddSuccessTable(points, results);
  JudgeSuccess(points, results);
  return absl::OkStatus();
}

}  // namespace

Experiment BsFigure1() {
  return {
      .name = "bs_figure1",
      .paper = "BS",
      .item = "Figure 1, Theorem 1",
      .title = "a random separator is a weak learner",
      .claim =
          "For a random h with h·w >= 0, a point x at the angle α from w has Pr(h·x <= 0) = α/π "
          "(Figure 1). So the expected error of such an h on data of margin γ is at most 1/2 − "
          "γ/π, and a random separator has an error of at most 1/2 − γ/4 with probability Ω(γ) "
          "(Theorem 1).",
      .protocol =
          "The separators h are the rows of random_projection(dimensions=2048) in 10 columns, "
          "kernel linear(), float64. There are 512 builds (quick: 32); about half of their rows "
          "have h·w >= 0 and are used. The paper fixes no data. Here every example has exactly the "
          "margin γ, for seven γ from 0.05 to 0.9. There are two data sets. One has 300 examples "
          "that are uniform on a sphere about the margin, new for each build. The other has the "
          "four points ±(γ, ±√(1 − γ²)). On these the error of a separator is 0, 1/2 or 1, so a "
          "draw succeeds only without any error. Algorithm 1's draws are models of "
          "weak_learner(rounds=1, draws=1), 10,000 for each γ and data set, quick 3,000; errors "
          "are exact, over all examples. Build i has seed 1,000,001 + i, model i 1,100,000 + i.",
      .run = Run};
}

}  // namespace phimap::lab
