#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/learn/margin.h"
#include "core/status/status_macros.h"
#include "core/theory/projection_law.h"
#include "lab/built_map.h"
#include "lab/experiments/experiments.h"

namespace phimap::lab {
namespace {

// Tolerance in standard deviations. The frequency of T draws has the deviation √(p(1 − p)/T).
constexpr double kSigmas = 5;
// Dimensions of each projection in the experiment with several classes.
constexpr int64_t kDimensions = 50;
// Number of projections in one map of `multiclass`, which has at most 65,536 features.
constexpr int64_t kBlocks = 1000;

double Dot(const double* a, const double* b, int64_t count) {
  return std::inner_product(a, a + count, b, 0.0);
}

double StandardErrorOf(double p, double draws) { return std::sqrt(p * (1 - p) / draws); }

// Returns the points (±s, 1) of class 1, followed by the points (±s, −1) of class 0.
Matrix<double> FourPoints(double s) {
  Matrix<double> points(4, 2);
  for (int64_t i = 0; i < 4; ++i) {
    points(i, 0) = i % 2 == 0 ? -s : s;
    points(i, 1) = i < 2 ? 1 : -1;
  }
  return points;
}

// The smallest margins of the four points by w = (0, 1), whose separator is the horizontal axis.
struct Margins {
  double unnormalised = 2;
  double normalised = 2;
};
Margins MarginsOf(const Matrix<double>& points) {
  const Separators separators{.norms = {1}, .intercepts = {}};
  Margins least;
  for (int64_t i = 0; i < 4; ++i) {
    const double score = points(i, 1);
    const double square = Dot(points.row(i), points.row(i), 2);
    const int label = i < 2 ? 1 : 0;
    least.unnormalised =
        std::min(least.unnormalised, UnnormalisedMargin(separators, {&score, 1}, label));
    least.normalised =
        std::min(least.normalised, NormalisedMargin(separators, {&score, 1}, square, label));
  }
  return least;
}

// Returns the number of features that separate the two classes. Each feature is the projection onto
// a random line.
int64_t LinesThatSeparate(const Matrix<double>& features) {
  int64_t apart = 0;
  for (int64_t k = 0; k < features.cols(); ++k) {
    const auto [low1, high1] = std::minmax({features(0, k), features(1, k)});
    const auto [low0, high0] = std::minmax({features(2, k), features(3, k)});
    apart += low1 > high0 || low0 > high1 ? 1 : 0;
  }
  return apart;
}

// Results over all s.
struct TwoClasses {
  // Distances of frequencies, in standard deviations. farthest: the largest distance from the law.
  // nearest_to_half: the smallest distance from half of the law, over all s at which the law is
  // 0.05 or more.
  double farthest = 0;
  double nearest_to_half = 1e9;
  // off_the_angle: the largest difference between the law and 2·atan(1/s)/π. off_one: the largest
  // difference between the unnormalised margin and 1.
  double off_the_angle = 0;
  double off_one = 0;
  // The margins and the law at the last s.
  Margins margins;
  double law = 1;
};

std::string Sigmas(double distance) { return absl::StrFormat("%.2f sigma", distance); }

absl::StatusOr<double> FrequencyApart(const Matrix<double>& points, int64_t lines, uint64_t seed) {
  const std::string mapping =
      absl::StrCat("random_projection(dimensions=", lines, ", serving_type=float64)");
  PHIMAP_ASSIGN_OR_RETURN(
      const BuiltMap map,
      BuiltMap::Build({.mapping = mapping, .kernel = "linear()"}, points.view(), seed));
  PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> features, map.Map(points.view()));
  return static_cast<double>(LinesThatSeparate(features)) / static_cast<double>(lines);
}

absl::Status MeasureAt(double s, int64_t lines, uint64_t seed, Table& table, TwoClasses& all) {
  const Matrix<double> points = FourPoints(s);
  PHIMAP_ASSIGN_OR_RETURN(const double frequency, FrequencyApart(points, lines, seed));
  const auto draws = static_cast<double>(lines);
  // The classes mirror each other. They are separated if both points of one class fall on the same
  // side of 0, which means that their cosine in one dimension is 1.
  all.law = CosineWithin(1, (1 - s * s) / (1 + s * s), 0, 2);
  const double sigma = StandardErrorOf(all.law, draws);
  all.margins = MarginsOf(points);
  all.farthest = std::max(all.farthest, std::abs(frequency - all.law) / sigma);
  if (all.law >= 0.05) {
    const double half = all.law / 2;
    all.nearest_to_half =
        std::min(all.nearest_to_half, std::abs(frequency - half) / StandardErrorOf(half, draws));
  }
  const double angle = 2 * std::atan(1 / s) / std::acos(-1.0);
  all.off_the_angle = std::max(all.off_the_angle, std::abs(all.law - angle));
  all.off_one = std::max(all.off_one, std::abs(all.margins.unnormalised - 1));
  table.Add(
      {s, all.margins.unnormalised, all.margins.normalised, all.law, frequency, sigma, lines});
  return absl::OkStatus();
}

void JudgeTwoClasses(const TwoClasses& all, int64_t lines, Results& results) {
  results.Judge(
      {.claim = "The probability that a random line keeps the two classes apart is the "
                "angle between the dashed lines over pi, 2 atan(1/s)/pi.",
       .printed = "2 atan(1/s)/pi",
       .measured = absl::StrFormat("the law of one dimension differs by %.1e at most; "
                                   "frequencies are within %s of it",
                                   all.off_the_angle, Sigmas(all.farthest)),
       .rule = absl::StrFormat("CosineWithin(n=1) within 1e-12 of it, and the frequency of "
                               "%d lines within %.0f sigma at each of ten s",
                               lines, kSigmas),
       .agrees = all.off_the_angle <= 1e-12 && all.farthest <= kSigmas});
  results.Judge(
      {.claim = "The rule can reject: the same frequencies are not those of the angle over "
                "2 pi.",
       .printed = "",
       .measured = Sigmas(all.nearest_to_half) + " away at the least",
       .rule = absl::StrFormat("over %.0f sigma at each s where the law is at least 0.05", kSigmas),
       .agrees = all.nearest_to_half > kSigmas});
  results.Judge(
      {.claim = "When the points are pushed apart, the unnormalised margin stays the same, and the "
                "normalised margin and the probability go to 0.",
       .printed = "",
       .measured = absl::StrFormat("at s = 100 margins %.3g and %.3g, probability %.3g",
                                   all.margins.unnormalised, all.margins.normalised, all.law),
       .rule =
           "the unnormalised margin 1 within 1e-12 at every s; at s = 100 the normalised margin "
           "and the probability under 0.011",
       .agrees = all.off_one <= 1e-12 && all.margins.normalised < 0.011 && all.law < 0.011});
}

absl::Status RunTwoClasses(const Options& options, Results& results) {
  const int64_t lines = options.Runs(65'536, 16'384);
  Table& table = results.AddTable(
      "lines",
      {"s", "unnormalised margin", "normalised margin", "law", "frequency", "standard error",
       "lines"},
      "Two classes, (s, 1) and (-s, 1) against (s, -1) and (-s, -1): both margins before the "
      "projection, and the probability that a random line keeps the classes apart.");
  TwoClasses all;
  int64_t run = 0;
  for (const double s : {0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0}) {
    PHIMAP_RETURN_IF_ERROR(MeasureAt(s, lines, options.Seed(run++), table, all));
  }
  JudgeTwoClasses(all, lines, results);
  return absl::OkStatus();
}

// Returns two rows. Row 0 is the difference u_1 − u_2 of two class vectors. Row 1 is a point of
// class 1, e_1 + s·e_4 times the factor `lead`. The score of class 1 on this point is greater than
// that of class 2 by `lead`.
Matrix<double> LeadingRow(double s, double lead) {
  Matrix<double> rows(2, 4);
  rows(0, 0) = 1;
  rows(0, 1) = -1;
  rows(1, 0) = lead;
  rows(1, 3) = s * lead;
  return rows;
}

// Returns the number of blocks of the map in which the score of class 1 on the point is still
// greater than that of class 2. Each block is a projection.
int64_t BlocksThatLead(const Matrix<double>& features) {
  int64_t leads = 0;
  for (int64_t begin = 0; begin < features.cols(); begin += kDimensions) {
    leads += Dot(features.row(0) + begin, features.row(1) + begin, kDimensions) > 0 ? 1 : 0;
  }
  return leads;
}

absl::StatusOr<double> FrequencyOfLeads(const Options& options, const Matrix<double>& rows,
                                        int64_t maps, int64_t first_run) {
  const std::string mapping = absl::StrCat("multiclass(classes=", kBlocks,
                                           ", dimensions=", kDimensions, ", serving_type=float64)");
  int64_t leads = 0;
  for (int64_t m = 0; m < maps; ++m) {
    PHIMAP_ASSIGN_OR_RETURN(const BuiltMap map,
                            BuiltMap::Build({.mapping = mapping, .kernel = "linear()"}, rows.view(),
                                            options.Seed(first_run + m)));
    PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> features, map.Map(rows.view()));
    leads += BlocksThatLead(features);
  }
  return static_cast<double>(leads) / static_cast<double>(maps * kBlocks);
}

void JudgeSeveralClasses(double lead, double law, double farthest, double draws, Results& results) {
  results.Judge(
      {.claim = "With several classes, too, a large unnormalised lead does not help: on a longer "
                "row a class may have a larger lead, and still lead only in about half of the "
                "projections.",
       .printed = "",
       .measured = absl::StrFormat("a lead of %.0f is kept with probability %.4f; "
                                   "frequencies are within %s of the law of the cosine",
                                   lead, law, Sigmas(farthest)),
       .rule = absl::StrFormat("frequencies of %.0f projections within %.0f sigma (sigma at "
                               "least 1/%.0f) of CosineWithin(n=50) at each of eight s, and the "
                               "last law under 0.53",
                               draws, kSigmas, draws),
       .agrees = farthest <= kSigmas && law < 0.53});
}

absl::Status RunSeveralClasses(const Options& options, Results& results) {
  const int64_t maps = options.Runs(8, 2);
  const auto draws = static_cast<double>(maps * kBlocks);
  Table& table = results.AddTable(
      "leads",
      {"s", "unnormalised lead", "normalised lead", "law", "frequency", "standard error", "draws"},
      "Three classes have the unit vectors e_1, e_2 and e_3. A row of class 1 is e_1 + s e_4 times "
      "the factor l = 1 + s/10. Shown are the lead of class 1's score over that of a rival class "
      "before the projection, and the probability that class 1 still leads after a projection to "
      "50 dimensions.");
  double farthest = 0;
  double lead = 0;
  double law = 1;
  int64_t first_run = 10'000;
  for (const double s : {0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0}) {
    lead = 1 + s / 10;
    const Matrix<double> rows = LeadingRow(s, lead);
    PHIMAP_ASSIGN_OR_RETURN(const double frequency,
                            FrequencyOfLeads(options, rows, maps, first_run));
    first_run += maps;
    const double length = std::sqrt(Dot(rows.row(1), rows.row(1), 4));
    law = CosineWithin(kDimensions, lead / (std::sqrt(2.0) * length), 0, 2);
    const double sigma = StandardErrorOf(law, draws);
    // The deviation is taken to be at least 1/draws. Otherwise, where a loss is nearly impossible,
    // a single loss would be many deviations.
    farthest = std::max(farthest, std::abs(frequency - law) / std::max(sigma, 1 / draws));
    table.Add({s, lead, lead / length, law, frequency, sigma, maps * kBlocks});
  }
  JudgeSeveralClasses(lead, law, farthest, draws, results);
  return absl::OkStatus();
}

absl::Status Run(const Options& options, Results& results) {
  PHIMAP_RETURN_IF_ERROR(RunTwoClasses(options, results));
  return RunSeveralClasses(options, results);
}

}  // namespace

Experiment ShFigure1() {
  return {
      .name = "sh_figure1",
      .paper = "SH",
      .item = "figure 1",
      .title =
          "classes with a constant unnormalised margin need not stay apart after a random "
          "projection",
      .claim =
          "Four points in two classes are pushed apart along the separating line. Their "
          "unnormalised margin stays the same. But the probability that their projections on a "
          "random line are separated is an angle divided by pi, and this angle goes to 0. The "
          "straightforward extension to several classes shows the same.",
      .protocol =
          "The points are (s, 1) and (-s, 1) against (s, -1) and (-s, -1), for s from 0.1 to 100. "
          "Random lines are the rows of random_projection: one map of 65,536 dimensions (quick: "
          "16,384) has as many independent lines, and each s has a new map. The paper leaves the "
          "extension to several classes to its reader. Here it is a row of class 1. As s grows, "
          "the lead of class 1's score on this row over that of class 2 grows too, while the angle "
          "between the row and the difference of the two class vectors approaches a right angle. "
          "For each s the row is projected 8,000 times (quick: 2,000) to 50 dimensions; these "
          "projections are the blocks of maps of multiclass.",
      .run = Run,
  };
}

}  // namespace phimap::lab
