#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/random/stream_ids.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "core/theory/monotone_search.h"
#include "core/theory/projection_law.h"
#include "lab/built_map.h"
#include "lab/experiments/experiments.h"

namespace phimap::lab {
namespace {

constexpr int64_t kColumns = 300;
constexpr std::array<double, 5> kCosines = {0.827, 0.527, -0.062, -0.0165, -0.827};
constexpr std::array<double, 2> kEpsilons = {0.1, 0.3};
constexpr std::array<int64_t, 10> kDimensions = {30, 60, 90, 120, 150, 180, 210, 240, 270, 300};
constexpr double kSigmas = 5;
// The largest rejection probability at which an angle is considered kept, and the largest number of
// dimensions that the search tries.
constexpr double kKept = 0.05;
constexpr int64_t kMostDimensions = int64_t{1} << 26;

struct Probabilities {
  // Probabilities for the cosine, P1, and for the inner product, P2.
  double p1 = 0;
  double p2 = 0;
};

// A point of one of the paper's curves, at one n.
struct Point {
  double cosine = 0;
  double epsilon = 0;
  int64_t n = 0;
  Probabilities law;
  Probabilities drawn;
};

// Returns the rejection probabilities by the laws: one minus the probability of being within 1 ±
// epsilon times the cosine.
Probabilities LawOf(int64_t n, double cosine, double epsilon) {
  const auto [low, high] = std::minmax({(1 - epsilon) * cosine, (1 + epsilon) * cosine});
  return {.p1 = 1 - CosineWithin(n, cosine, low, high),
          .p2 = 1 - InnerProductWithin(n, cosine, low, high)};
}

double Dot(const double* a, const double* b, int64_t count) {
  return std::inner_product(a, a + count, b, 0.0);
}

void Normalise(double* row) {
  const double length = std::sqrt(Dot(row, row, kColumns));
  for (int64_t k = 0; k < kColumns; ++k) row[k] /= length;
}

// Returns, for each cosine, a pair of unit vectors with this cosine. w is uniform on the sphere,
// and x is cosine·w + sine·v, where v is uniform on the unit vectors orthogonal to w.
Matrix<double> Pairs(uint64_t seed) {
  RandomCursor normals(RandomStream(seed, StreamId::kLabRows));
  Matrix<double> rows(2 * static_cast<int64_t>(kCosines.size()), kColumns);
  for (int64_t i = 0; i < rows.size(); ++i) rows.data()[i] = normals.Normal();
  for (size_t pair = 0; pair < kCosines.size(); ++pair) {
    double* const w = rows.row(2 * static_cast<int64_t>(pair));
    double* const x = w + kColumns;
    Normalise(w);
    const double along = Dot(w, x, kColumns);
    for (int64_t k = 0; k < kColumns; ++k) x[k] -= along * w[k];
    Normalise(x);
    const double cosine = kCosines[pair];
    const double sine = std::sqrt(1 - cosine * cosine);
    for (int64_t k = 0; k < kColumns; ++k) x[k] = cosine * w[k] + sine * x[k];
  }
  return rows;
}

// Adds to `points` the rejections of one projection of the pairs. `points` has all points of the
// figure with the n of this projection.
void CountRejections(const Matrix<double>& features, std::vector<Point*>& points) {
  const int64_t n = features.cols();
  for (size_t pair = 0; pair < kCosines.size(); ++pair) {
    const double* const w = features.row(2 * static_cast<int64_t>(pair));
    const double* const x = w + n;
    const double product = Dot(w, x, n) / kCosines[pair];
    const double cosine = product / std::sqrt(Dot(w, w, n) * Dot(x, x, n));
    for (Point* point : points) {
      if (point->cosine != kCosines[pair]) continue;
      const double low = 1 - point->epsilon;
      const double high = 1 + point->epsilon;
      point->drawn.p1 += low <= cosine && cosine < high ? 0 : 1;
      point->drawn.p2 += low <= product && product <= high ? 0 : 1;
    }
  }
}

// Returns every point of the figure, with its law.
std::vector<Point> Points() {
  std::vector<Point> points;
  for (const double cosine : kCosines) {
    for (const double epsilon : kEpsilons) {
      for (const int64_t n : kDimensions) {
        points.push_back({.cosine = cosine,
                          .epsilon = epsilon,
                          .n = n,
                          .law = LawOf(n, cosine, epsilon),
                          .drawn = {}});
      }
    }
  }
  return points;
}

absl::Status Draw(const Options& options, int64_t draws, std::vector<Point>& points) {
  const Matrix<double> rows = Pairs(options.Seed(0));
  int64_t run = 1;
  for (const int64_t n : kDimensions) {
    std::vector<Point*> of_n;
    for (Point& point : points) {
      if (point.n == n) of_n.push_back(&point);
    }
    const std::string mapping =
        absl::StrCat("random_projection(dimensions=", n, ", serving_type=float64)");
    for (int64_t i = 0; i < draws; ++i) {
      PHIMAP_ASSIGN_OR_RETURN(const BuiltMap map,
                              BuiltMap::Build({.mapping = mapping, .kernel = "linear()"},
                                              rows.view(), options.Seed(run++)));
      PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> features, map.Map(rows.view()));
      CountRejections(features, of_n);
    }
  }
  for (Point& point : points) {
    point.drawn.p1 /= static_cast<double>(draws);
    point.drawn.p2 /= static_cast<double>(draws);
  }
  return absl::OkStatus();
}

double StandardErrorOf(double p, double draws) { return std::sqrt(p * (1 - p) / draws); }

// Returns by how many standard deviations a frequency differs from its probability p. A difference
// of up to three draws is ignored, because one draw is many deviations if p is nearly 0.
double Sigmas(double frequency, double p, double draws) {
  const double off = std::max(0.0, std::abs(frequency - p) - 3 / draws);
  return off == 0 ? 0 : off / StandardErrorOf(p, draws);
}

void AddPoints(const std::vector<Point>& points, double draws, Results& results) {
  Table& table = results.AddTable(
      "rejections", {"cosine", "epsilon", "n", "P1 law", "P1 drawn", "P1 standard error", "P2 law",
                     "P2 drawn", "P2 standard error", "draws"});
  for (const Point& point : points) {
    table.Add({point.cosine, point.epsilon, point.n, point.law.p1, point.drawn.p1,
               StandardErrorOf(point.law.p1, draws), point.law.p2, point.drawn.p2,
               StandardErrorOf(point.law.p2, draws), static_cast<int64_t>(draws)});
  }
}

const Probabilities& LawAt(const std::vector<Point>& points, double cosine, double epsilon,
                           int64_t n) {
  for (const Point& point : points) {
    if (point.cosine == cosine && point.epsilon == epsilon && point.n == n) return point.law;
  }
  PHIMAP_CHECK(false);
}

// Returns the least number of dimensions at which the law of the cosine has a rejection probability
// of at most kKept.
std::optional<int64_t> DimensionsThatKeep(double cosine, double epsilon) {
  // A cosine has about the deviation (1 − c²)/√n.
  const double ratio = 1.96 * (1 - cosine * cosine) / (epsilon * cosine);
  return FirstWhere(2, kMostDimensions, static_cast<int64_t>(ratio * ratio),
                    [&](int64_t n) { return LawOf(n, cosine, epsilon).p1 <= kKept; });
}

void AddEnds(const std::vector<Point>& points, Results& results) {
  Table& table = results.AddTable(
      "ends",
      {"cosine", "epsilon", "P1 at n = 30", "P1 at n = 300", "P2 at n = 30", "P2 at n = 300",
       "n for P1 = 0.05"},
      "P1 and P2 by the laws at both ends of the figure, and the number of dimensions n at which "
      "the cosine is rejected with probability 0.05 at most. The paper's obtuse angles are kept "
      "too, but only with over 10,000 dimensions.");
  for (const double cosine : kCosines) {
    for (const double epsilon : kEpsilons) {
      const Probabilities& first = LawAt(points, cosine, epsilon, kDimensions.front());
      const Probabilities& last = LawAt(points, cosine, epsilon, kDimensions.back());
      const std::optional<int64_t> n = DimensionsThatKeep(cosine, epsilon);
      table.Add({cosine, epsilon, first.p1, last.p1, first.p2, last.p2,
                 n.has_value() ? Cell(*n) : Cell("more than 2^26")});
    }
  }
}

void JudgeDraws(const std::vector<Point>& points, double draws, Results& results) {
  double farthest = 0;
  double of_others = 0;
  for (const Point& point : points) {
    farthest = std::max({farthest, Sigmas(point.drawn.p1, point.law.p1, draws),
                         Sigmas(point.drawn.p2, point.law.p2, draws)});
    if (point.n % 120 != 0) continue;
    const Probabilities& other = LawAt(points, point.cosine, point.epsilon, point.n / 4);
    of_others = std::max({of_others, Sigmas(point.drawn.p1, other.p1, draws),
                          Sigmas(point.drawn.p2, other.p2, draws)});
  }
  const std::string rule = absl::StrFormat(
      "all %d frequencies of %.0f draws differ from the laws by at most %.0f sigma, after 3/%.0f "
      "is subtracted from each difference",
      2 * points.size(), draws, kSigmas, draws);
  results.Judge({.claim =
                     "Empirical rejection probabilities of cosine and inner product follow their "
                     "exact laws.",
                 .printed = "",
                 .measured = absl::StrFormat("the farthest is %.2f sigma away", farthest),
                 .rule = rule,
                 .agrees = farthest <= kSigmas});
  results.Judge({.claim = "The rule can reject: the same frequencies are not those of a quarter as "
                          "many dimensions.",
                 .printed = "",
                 .measured = absl::StrFormat("the farthest is %.1f sigma away", of_others),
                 .rule = absl::StrFormat("some frequency more than %.0f sigma away", kSigmas),
                 .agrees = of_others > kSigmas});
}

// Returns true if both probabilities of `a` are smaller than those of `b`. A pair of probabilities
// that are both under 1e-9 passes as well, because the laws are accurate only to 1e-10.
bool AreUnder(const Probabilities& a, const Probabilities& b) {
  const auto is_under = [](double x, double y) { return x < y || (x < 1e-9 && y < 1e-9); };
  return is_under(a.p1, b.p1) && is_under(a.p2, b.p2);
}

// Number of comparisons of acute angles that agree with the paper.
struct AcuteCounts {
  int cosine_wins = 0;
  int sharper_wins = 0;
  int wider_wins = 0;
  int falls = 0;
  // Number of points with acute angles. Each of the four comparisons is made at each of these
  // points.
  int all = 0;
};

AcuteCounts CountAcute(const std::vector<Point>& points) {
  AcuteCounts counts;
  for (const Point& point : points) {
    if (point.cosine < 0) continue;
    ++counts.all;
    const auto law = [&](double cosine, double epsilon, int64_t n) {
      return LawAt(points, cosine, epsilon, n);
    };
    counts.cosine_wins += point.law.p1 < point.law.p2 ? 1 : 0;
    counts.sharper_wins +=
        AreUnder(law(0.827, point.epsilon, point.n), law(0.527, point.epsilon, point.n)) ? 1 : 0;
    counts.wider_wins +=
        AreUnder(law(point.cosine, 0.3, point.n), law(point.cosine, 0.1, point.n)) ? 1 : 0;
    counts.falls += point.n == kDimensions.front() ||
                            AreUnder(point.law, law(point.cosine, point.epsilon, point.n - 30))
                        ? 1
                        : 0;
  }
  return counts;
}

// Judges panels a and b, the acute angles.
void JudgeAcute(const std::vector<Point>& points, Results& results) {
  const AcuteCounts counts = CountAcute(points);
  const auto judge = [&](std::string claim, int count, std::string rule) {
    results.Judge(
        {.claim = std::move(claim),
         .printed = "",
         .measured = absl::StrFormat("at %d of %d points", count, counts.all),
         .rule = rule + " (both under 1e-9 counts as agreement: the laws are good to 1e-10)",
         .agrees = count == counts.all});
  };
  judge(
      "For the same cosine, epsilon and n the cosine is rejected less often than the inner "
      "product (figure 2 a and b).",
      counts.cosine_wins, "P1 < P2 by the laws for .827 and .527 at both epsilon and every n");
  judge("A more acute angle is rejected less often.", counts.sharper_wins,
        "P1 and P2 at .827 under those at .527, by the laws, at both epsilon and every n");
  judge("The rejection probability falls as n grows.", counts.falls,
        "P1 and P2 by the laws fall from each n to the next, for .827 and .527 and both epsilon");
  judge("The rejection probability falls as epsilon grows.", counts.wider_wins,
        "P1 and P2 by the laws at epsilon .3 under those at .1, for .827 and .527 and every n");
}

// Judges panels c and d, the obtuse angles.
void JudgeObtuse(const std::vector<Point>& points, Results& results) {
  double least = 1;
  double mirrored = 0;
  for (const Point& point : points) {
    if (std::abs(point.cosine) < 0.1) least = std::min({least, point.law.p1, point.law.p2});
    if (point.cosine != -0.827) continue;
    const Probabilities& acute = LawAt(points, 0.827, point.epsilon, point.n);
    mirrored =
        std::max({mirrored, std::abs(acute.p1 - point.law.p1), std::abs(acute.p2 - point.law.p2)});
  }
  results.Judge({.claim =
                     "At the cosines -.062 and -.0165 rejection does not shrink towards 0 as n "
                     "grows to 300 (figure 2 c and d).",
                 .printed = "",
                 .measured = absl::StrFormat("the least probability is %.3f", least),
                 .rule = "P1 and P2 by the laws over 1/2 at both epsilon and every n",
                 .agrees = least > 0.5});
  const Probabilities& far = LawAt(points, -0.827, 0.3, kDimensions.back());
  results.Judge(
      {.claim = "Neither angle nor inner product is preserved when the angle is obtuse.",
       .printed = "",
       .measured = absl::StrFormat("at -.827, n = 300 and epsilon .3 P1 is %s and P2 is %.1e",
                                   far.p1 < 1e-10 ? "under 1e-10" : absl::StrCat(far.p1), far.p2),
       .rule = "P1 and P2 at -.827 over 1/2 as well",
       .agrees = far.p1 > 0.5 && far.p2 > 0.5,
       .why_not =
           "The reason is that the cosines are near 0, not that the angles are obtuse: with -x in "
           "place of x the cosine -.827 becomes .827, and a projection keeps both equally well. "
           "Both obtuse pairs of the paper are nearly orthogonal, and a share epsilon of a cosine "
           "near 0 is a small tolerance: .062 would be rejected as often as -.062."});
  results.Judge(
      {.claim = "The cosine -.827, which the paper leaves out, has the probabilities of .827.",
       .printed = "",
       .measured = absl::StrFormat("they differ by %.1e at most", mirrored),
       .rule = "P1 and P2 by the laws within 1e-10 at both epsilon and every n",
       .agrees = mirrored <= 1e-10});
}

absl::Status Run(const Options& options, Results& results) {
  const int64_t draws = options.Runs(2000, 80);
  std::vector<Point> points = Points();
  PHIMAP_RETURN_IF_ERROR(Draw(options, draws, points));
  AddPoints(points, static_cast<double>(draws), results);
  AddEnds(points, results);
  JudgeDraws(points, static_cast<double>(draws), results);
  JudgeAcute(points, results);
  JudgeObtuse(points, results);
  return absl::OkStatus();
}

}  // namespace

Experiment ShFigure2() {
  return {
      .name = "sh_figure2",
      .paper = "SH",
      .item = "figure 2 a-d",
      .title = "how often a random projection changes an angle or an inner product too much",
      .claim =
          "P1 and P2 are the shares of 2,000 Gaussian projections from 300 dimensions to n = 30, "
          "60, ..., 300 that change the cosine of two vectors (P1) or their inner product (P2) by "
          "more than a share epsilon of it. Acute angles (.827, .527) are kept, with fewer "
          "dimensions if they are more acute, and the cosine is kept better than the inner "
          "product; obtuse angles (-.062, -.0165) are not kept.",
      .protocol =
          "P1 is computed by the law of the cosine (CosineWithin), and P2 by quadrature over the "
          "law of the inner product (InnerProductWithin). Both are compared with the frequencies "
          "in 2,000 maps of random_projection for each n (quick: 80); each map projects all pairs. "
          "A pair is a random unit vector and a second one that has exactly the given cosine with "
          "it. The paper gives epsilon .1 and .3; the cosine -.827 is added here.",
      .run = Run,
  };
}

}  // namespace phimap::lab
