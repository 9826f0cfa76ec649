#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "core/status/status_macros.h"
#include "core/theory/monotone_search.h"
#include "core/theory/multiclass_bounds.h"
#include "core/theory/projection_bounds.h"
#include "lab/experiments/experiments.h"
#include "lab/experiments/sh_planes.h"

namespace phimap::lab {
namespace {

constexpr std::array<double, 2> kEpsilons = {0.1, 0.3};
constexpr std::array<int64_t, 13> kDimensions = {10,  20,  30,  40,  50,  60,  80,
                                                 100, 150, 200, 300, 500, 1000};
constexpr size_t kHundred = 7;
constexpr size_t kThreeHundred = 10;
// Dimensions at which the theorems are compared with measured margins, and the probability with
// which a theorem may fail.
constexpr std::array<int64_t, 5> kPromised = {100, 300, 1000, 3000, 6000};
constexpr double kDelta = 0.05;

// One panel of the figure at one epsilon.
struct Curve {
  std::string margin;
  double epsilon = 0;
  std::vector<double> rejected;  // one per n
};

double StandardErrorOf(double p, double draws) { return std::sqrt(p * (1 - p) / draws); }

double ShareRejected(const std::vector<PlaneMargins>& drawn, const PlaneMargins& before,
                     bool is_normalised, double epsilon) {
  double rejected = 0;
  for (const PlaneMargins& after : drawn) {
    const double ratio = is_normalised ? after.normalised / before.normalised
                                       : after.unnormalised / before.unnormalised;
    rejected += 1 - epsilon <= ratio && ratio < 1 + epsilon ? 0 : 1;
  }
  return rejected / static_cast<double>(drawn.size());
}

absl::Status MeasureCurves(const Planes& planes, const std::array<std::string, 2>& names,
                           int64_t draws, uint64_t seed, std::vector<Curve>& curves) {
  const PlaneMargins before = MarginsOf(planes, planes.rows);
  const size_t first = curves.size();
  for (const std::string& name : names) {
    for (const double epsilon : kEpsilons) {
      curves.push_back({.margin = name, .epsilon = epsilon, .rejected = {}});
    }
  }
  for (const int64_t n : kDimensions) {
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<PlaneMargins> drawn,
                            DrawMargins(planes, n, draws, seed + static_cast<uint64_t>(n * 1000)));
    for (size_t c = first; c < curves.size(); ++c) {
      const bool is_normalised = curves[c].margin == names[0];
      curves[c].rejected.push_back(ShareRejected(drawn, before, is_normalised, curves[c].epsilon));
    }
  }
  return absl::OkStatus();
}

void AddCurves(const std::vector<Curve>& curves, int64_t draws, Results& results) {
  Table& all = results.AddTable("rejections",
                                {"margin", "epsilon", "n", "rejected", "standard error", "draws"});
  Table& ends = results.AddTable(
      "ends",
      {"margin", "epsilon", "rejected at n = 10", "at n = 100", "at n = 300", "at n = 1000"},
      "The share of the projections that change the margin of the data set by more than a share "
      "epsilon.");
  for (const Curve& curve : curves) {
    for (size_t k = 0; k < kDimensions.size(); ++k) {
      all.Add({curve.margin, curve.epsilon, kDimensions[k], curve.rejected[k],
               StandardErrorOf(curve.rejected[k], static_cast<double>(draws)), draws});
    }
    ends.Add({curve.margin, curve.epsilon, curve.rejected[0], curve.rejected[kHundred],
              curve.rejected[kThreeHundred], curve.rejected.back()});
  }
}

void JudgeCurve(const Curve& curve, double draws, Results& results) {
  const double fall = curve.rejected.front() - curve.rejected.back();
  const double error = std::hypot(StandardErrorOf(curve.rejected.front(), draws),
                                  StandardErrorOf(curve.rejected.back(), draws));
  double rise = 0;
  for (size_t k = 1; k < curve.rejected.size(); ++k) {
    rise = std::max(rise, curve.rejected[k] - curve.rejected[k - 1]);
  }
  // The difference of two shares has at most this standard deviation.
  const double sigma = std::sqrt(0.5 / draws);
  results.Judge(
      {.claim = absl::StrFormat("The rejection probability of the %s margin falls with n, epsilon "
                                "%.1f.",
                                curve.margin, curve.epsilon),
       .printed = "",
       .measured = absl::StrFormat("%.3f at n = 10, %.3f at n = 1000; the largest rise between "
                                   "neighbours is %.3f",
                                   curve.rejected.front(), curve.rejected.back(), rise),
       .rule =
           absl::StrFormat("falls from the first n to the last by more than 3 standard errors "
                           "(here %.3f); no rise between neighbouring n is over 4 times the "
                           "largest standard error that a difference of two shares of %.0f draws "
                           "can have (%.3f)",
                           3 * error, draws, 4 * sigma),
       .agrees = fall > 3 * error && rise <= 4 * sigma});
}

// A theorem, and what it promises about the measured margins.
struct Theorem {
  std::string name;
  const Planes* planes = nullptr;
  double margin = 0;
  // Number of angles that must be kept at once, for m points and L classes: m, L·m or m(L − 1).
  double angles = 0;
  // Whether the theorem's margin is that of one vector for all classes.
  bool one_vector = false;
  // Returns the promised margin if all angles are kept to a distortion of e.
  std::function<double(double)> promised;
};

// Returns the distortion e at which the theorem requires n dimensions, that is, at which
// AngleDimensions(e, angles, delta) is n. Returns nullopt if n is too small for every e < 1.
// LengthDistortion bounds the probability of 2 tails, but AngleDimensions that of 6·angles tails.
// So delta is divided by 3·angles.
std::optional<double> DistortionAt(const Theorem& theorem, int64_t n) {
  return LengthDistortion(Tier::kDerived, n, kDelta / (3 * theorem.angles));
}

// Returns the margin that the theorem promises at n dimensions; nullopt unless it is more than 0.
std::optional<double> PromiseAt(const Theorem& theorem, int64_t n) {
  const std::optional<double> e = DistortionAt(theorem, n);
  if (!e.has_value() || theorem.promised(*e) <= 0) return std::nullopt;
  return theorem.promised(*e);
}

// Returns the theorem's margins after each of `draws` projections, in ascending order.
absl::StatusOr<std::vector<double>> DrawTheorems(const Theorem& theorem, int64_t n, int64_t draws,
                                                 uint64_t seed) {
  std::vector<double> margins;
  if (theorem.one_vector) {
    PHIMAP_ASSIGN_OR_RETURN(margins, DrawOneVectorMargins(*theorem.planes, n, draws, seed));
  } else {
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<PlaneMargins> drawn,
                            DrawMargins(*theorem.planes, n, draws, seed));
    for (const PlaneMargins& both : drawn) margins.push_back(both.normalised);
  }
  std::sort(margins.begin(), margins.end());
  return margins;
}

double ShareUnder(const std::vector<double>& rising, double promise) {
  const auto end = std::lower_bound(rising.begin(), rising.end(), promise);
  return static_cast<double>(end - rising.begin()) / static_cast<double>(rising.size());
}

Cell OrElse(const std::optional<double>& number, const char* text) {
  return number.has_value() ? Cell(*number) : Cell(text);
}

void JudgeTheorem(const Theorem& theorem, int64_t draws, double most_broken, int tested,
                  Results& results) {
  const std::optional<int64_t> first =
      FirstWhere(1, 1'000'000, 1000, [&](int64_t n) { return PromiseAt(theorem, n).has_value(); });
  results.Judge(
      {.claim = theorem.name + ": with probability 1 - delta the projected data have the promised "
                               "margin at least.",
       .printed = "",
       .measured = absl::StrFormat("under the promise in at most %.0f %% of %d draws, at %d n; for "
                                   "n under %d it promises nothing",
                                   100 * most_broken, draws, tested, first.value_or(0)),
       .rule = absl::StrFormat("it promises more than 0 at one n of the table at least, and at "
                               "each such n at most delta = %.0f %% of the draws are under the "
                               "promise",
                               100 * kDelta),
       .agrees = tested > 0 && most_broken <= kDelta});
}

absl::Status RunTheorem(const Theorem& theorem, const Options& options, Table& table,
                        Results& results) {
  const int64_t draws = options.Runs(100, 12);
  double most_broken = 0;
  int tested = 0;
  for (const int64_t n : kPromised) {
    if (options.quick && n > 3000) continue;
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> margins,
                            DrawTheorems(theorem, n, draws, options.Seed(900'000 + 10 * n)));
    const std::optional<double> promise = PromiseAt(theorem, n);
    std::optional<double> broken;
    if (promise.has_value()) {
      broken = ShareUnder(margins, *promise);
      most_broken = std::max(most_broken, *broken);
      ++tested;
    }
    table.Add({theorem.name, theorem.margin, n, OrElse(DistortionAt(theorem, n), "over 1"),
               OrElse(promise, "nothing"), margins.front(), margins[margins.size() / 2],
               OrElse(broken, "")});
  }
  JudgeTheorem(theorem, draws, most_broken, tested, results);
  return absl::OkStatus();
}

// Checks that the verdict can fail: compares the promise for many dimensions with projections to
// few.
absl::Status RunControl(const Theorem& theorem, const Options& options, Results& results) {
  constexpr int64_t kFew = 20;
  constexpr int64_t kMany = 3000;
  const int64_t draws = options.Runs(100, 12);
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<double> margins,
                          DrawTheorems(theorem, kFew, draws, options.Seed(980'000)));
  const double broken = ShareUnder(margins, PromiseAt(theorem, kMany).value());
  results.Judge(
      {.claim = absl::StrFormat("The rule can reject: projections to %d dimensions do not "
                                "keep what the sharper Theorem 6 promises of %d.",
                                kFew, kMany),
       .printed = "",
       .measured = absl::StrFormat("under the promise in %.0f %% of %d draws", 100 * broken, draws),
       .rule = absl::StrFormat("in more than delta = %.0f %% of the draws", 100 * kDelta),
       .agrees = broken > kDelta});
  return absl::OkStatus();
}

absl::Status RunTheorems(const Planes& two, const Planes& three, const Options& options,
                         Results& results) {
  Table& table = results.AddTable(
      "promises",
      {"theorem", "margin before", "n", "distortion e", "promised margin", "least measured",
       "median measured", "share under the promise"},
      "The margins that the theorems promise for n dimensions at delta = .05, and the margins "
      "measured after such projections. A theorem promises nothing where its e would not be under "
      "1 or its margin would not be positive.");
  const double of_two = MarginsOf(two, two.rows).normalised;
  const double of_three = MarginsOf(three, three.rows).normalised;
  const auto points = static_cast<double>(three.points());
  const auto classes = static_cast<double>(three.classes);
  Theorem six = {.name = "Theorem 6",
                 .planes = &two,
                 .margin = of_two,
                 .angles = static_cast<double>(two.points()),
                 .promised = [=](double e) { return DataSetMargin(Tier::kLiteral, of_two, e); }};
  PHIMAP_RETURN_IF_ERROR(RunTheorem(six, options, table, results));
  six.name = "Theorem 6, sharper by the same proof";
  six.promised = [=](double e) { return DataSetMargin(Tier::kDerived, of_two, e); };
  PHIMAP_RETURN_IF_ERROR(RunTheorem(six, options, table, results));
  PHIMAP_RETURN_IF_ERROR(
      RunTheorem({.name = "Theorem 8",
                  .planes = &three,
                  .margin = of_three,
                  .angles = classes * points,
                  .promised = [=](double e) { return ClassesMargin(of_three, e); }},
                 options, table, results));
  PHIMAP_RETURN_IF_ERROR(
      RunTheorem({.name = "Theorem 9",
                  .planes = &three,
                  .margin = of_three,
                  .angles = (classes - 1) * points,
                  .one_vector = true,
                  .promised = [=, classes = three.classes](
                                  double e) { return OneParameterMargin(of_three, e, classes); }},
                 options, table, results));
  return RunControl(six, options, results);
}

absl::Status Run(const Options& options, Results& results) {
  const Planes two = DrawPlanes({-1, 1}, options.Seed(0));
  const Planes three = DrawPlanes({-3, 0, 3}, options.Seed(1));
  const int64_t draws = options.Runs(400, 30);
  std::vector<Curve> curves;
  PHIMAP_RETURN_IF_ERROR(MeasureCurves(two, {"normalised binary", "unnormalised binary"}, draws,
                                       options.Seed(10'000), curves));
  PHIMAP_RETURN_IF_ERROR(MeasureCurves(three, {"normalised multiclass", "unnormalised multiclass"},
                                       draws, options.Seed(500'000), curves));
  AddCurves(curves, draws, results);
  for (const Curve& curve : curves) JudgeCurve(curve, static_cast<double>(draws), results);
  return RunTheorems(two, three, options, results);
}

}  // namespace

Experiment ShFigure3() {
  return {
      .name = "sh_figure3",
      .paper = "SH",
      .item = "figure 3 a-d",
      .title =
          "how often a random projection changes a margin too much, and the margins that "
          "Theorems 6, 8 and 9 promise",
      .claim =
          "The points lie on parallel hyperplanes in 100 dimensions, five in each class. A random "
          "projection to n dimensions is rejected if it changes the margin by more than a share "
          "epsilon. The share of rejected projections falls as n grows. This holds for normalised "
          "and unnormalised margins, binary and multiclass (L = 3). Theorems 6, 8 and 9 promise a "
          "margin with probability 1 - delta.",
      .protocol =
          "The paper gives the number of points, of dimensions and of matrices (100), but neither "
          "where the hyperplanes and points are, nor n, nor to which separator the margin after "
          "the projection belongs. Here the hyperplanes cross one random unit direction u at -1 "
          "and 1, or at -3, 0 and 3; points are normal along their hyperplane, about 0.7 away from "
          "the line along u. Vectors along u alone cannot separate three parallel classes, because "
          "the middle class would never have the greatest score. So every point gets a last column "
          "of 1, and a class the vector (offset u, 1), whose best rival has a positive cosine, as "
          "Theorem 8's proof needs. The margin after a projection R is that of the separator Ru, "
          "as in the proofs; the margin of the best separator can only be larger. "
          "core/learn/margin.h computes it. One data set, 400 maps of random_projection (quick: "
          "30) for each n from 10 to 1,000. The theorems are compared with 100 maps (quick: 12) "
          "for each n from 100 to 6,000 (quick: 3,000), at delta = .05 and the e at which they "
          "require n dimensions. For Theorem 9 these are maps of multiclass.",
      .run = Run,
  };
}

}  // namespace phimap::lab
