#include "lab/experiments/margin_distributions.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "core/random/stream_ids.h"

namespace phimap::lab {
namespace {

constexpr double kDelta = 0.05;
constexpr int64_t kSphereColumns = 600;
constexpr int64_t kSpherePoints = 1000;
constexpr double kSphereMargin = 0.5;
constexpr double kAlongTheLastColumn = 0.01;

// Draws rows of the sphere, all with label 1.
Matrix<double> DrawSphere(int64_t count, uint64_t seed) {
  const double rest = std::sqrt(1 - kSphereMargin * kSphereMargin);
  RandomCursor normals(RandomStream(seed, StreamId::kLabRows));
  RandomCursor coins(RandomStream(seed, StreamId::kLabLabels), static_cast<uint64_t>(count));
  Matrix<double> rows(count, kSphereColumns);
  for (int64_t i = 0; i < count; ++i) {
    double* row = rows.row(i);
    double square = 0;
    for (int64_t k = 1; k < kSphereColumns - 1; ++k) {
      row[k] = normals.Normal();
      square += row[k] * row[k];
    }
    const bool last = coins.UniformOpen01() < kAlongTheLastColumn;
    const double scale = last ? 0 : rest / std::sqrt(square);
    for (int64_t k = 1; k < kSphereColumns - 1; ++k) row[k] *= scale;
    row[0] = kSphereMargin;
    row[kSphereColumns - 1] = last ? rest : 0;
  }
  return rows;
}

// Draws rows from finitely many points, all with label 1.
Matrix<double> DrawPoints(const Matrix<double>& points, const std::vector<double>& masses,
                          int64_t count, uint64_t seed) {
  RandomCursor random(RandomStream(seed, StreamId::kLabRows));
  Matrix<double> rows(count, points.cols());
  for (int64_t i = 0; i < count; ++i) {
    double rest = random.UniformOpen01();
    size_t point = 0;
    while (point + 1 < masses.size() && rest >= masses[point]) rest -= masses[point++];
    std::copy_n(points.row(static_cast<int64_t>(point)), points.cols(), rows.row(i));
  }
  return rows;
}

// Returns the probability that more than `allowed` of `boxes` boxes are empty after `throws`
// throws. A throw hits at most one box, each with probability `each`.
double ManyBoxesAreEmpty(int64_t boxes, double each, int64_t throws, int64_t allowed) {
  // filled[k]: the probability of k full boxes.
  std::vector<double> filled(static_cast<size_t>(boxes) + 1, 0.0);
  filled[0] = 1;
  for (int64_t t = 0; t < throws; ++t) {
    for (int64_t k = boxes; k >= 0; --k) {
      const double gains = static_cast<double>(boxes - k) * each;
      const double arrives = k > 0 ? filled[k - 1] * static_cast<double>(boxes - k + 1) * each : 0;
      filled[k] = filled[k] * (1 - gains) + arrives;
    }
  }
  double sum = 0;
  for (int64_t k = 0; k < boxes - allowed; ++k) sum += filled[k];
  return sum;
}

}  // namespace

Matrix<double> MarginDistribution::Draw(int64_t count, uint64_t seed) const {
  Matrix<double> rows =
      rare == 0 ? DrawSphere(count, seed) : DrawPoints(points, masses, count, seed);
  const RandomStream labels(seed, StreamId::kLabLabels);
  for (int64_t i = 0; i < count; ++i) {
    if (labels.Bits64(static_cast<uint64_t>(i)) % 2 == 0) continue;
    for (int64_t k = 0; k < rows.cols(); ++k) rows(i, k) = -rows(i, k);
  }
  return rows;
}

std::optional<Interval> MarginDistribution::FailureLaw(int64_t draws) const {
  if (rare == 0) return std::nullopt;
  const double each = masses.back();
  const double law = ManyBoxesAreEmpty(rare, each, draws, static_cast<int64_t>(error / each));
  const double without_common = std::pow(1 - masses[0], static_cast<double>(draws));
  return Interval{.low = std::max(law - without_common, 0.0),
                  .high = std::min(law + without_common, 1.0)};
}

MarginDistribution OneRareDirection() {
  constexpr double kError = 0.3;
  const double angle = 65.5 * std::numbers::pi / 180;
  const double rare = kError + 1e-9;
  MarginDistribution one{.name = "one rare direction",
                         .margin = 0.84,
                         .error = kError,
                         .delta = kDelta,
                         .points = Matrix<double>(2, 2),
                         .masses = {1 - rare, rare},
                         .separators = Matrix<double>(1, 2),
                         .rare = 1};
  one.points(0, 0) = 1;
  one.points(1, 0) = std::cos(angle);
  one.points(1, 1) = std::sin(angle);
  one.separators(0, 0) = std::cos(angle / 2);
  one.separators(0, 1) = std::sin(angle / 2);
  return one;
}

MarginDistribution RareDirections(int64_t count, double margin, double error) {
  // N is `count`, and c, e_1, …, e_N are orthogonal unit vectors. The separator is w = α·c + β·(e_1
  // + … + e_N). The common point is c, and the rare points are a·c + b·e_i. The factors are such
  // that a·α = b·β = h, so the margin of a rare point is 2h. The choice α² = h allows the largest
  // number of rare directions at this margin, which is ((1 − h)/h)².
  const double half = 1 / (std::sqrt(static_cast<double>(count)) + 1);
  const double alpha = std::sqrt(half);
  const double beta = std::sqrt((1 - half) / static_cast<double>(count));
  const double a = half / alpha;
  const double mass = std::numbers::e * error;
  MarginDistribution many{.name = absl::StrCat(count, " rare directions"),
                          .margin = margin,
                          .error = error,
                          .delta = kDelta,
                          .points = Matrix<double>(count + 1, count + 1),
                          .masses = {1 - mass},
                          .separators = Matrix<double>(1, count + 1),
                          .rare = count};
  many.points(0, 0) = 1;
  many.separators(0, 0) = alpha;
  for (int64_t i = 1; i <= count; ++i) {
    many.points(i, 0) = a;
    many.points(i, i) = std::sqrt(1 - a * a);
    many.separators(0, i) = beta;
    many.masses.push_back(mass / static_cast<double>(count));
  }
  return many;
}

MarginDistribution Sphere(uint64_t seed) {
  MarginDistribution sphere{.name = "sphere",
                            .margin = kSphereMargin,
                            .error = 0.1,
                            .delta = kDelta,
                            .points = DrawSphere(kSpherePoints, seed),
                            .masses = std::vector<double>(kSpherePoints, 1.0 / kSpherePoints),
                            .separators = Matrix<double>(2, kSphereColumns)};
  sphere.separators(0, 0) = 1;
  sphere.separators(1, 0) = 0.5;
  sphere.separators(1, kSphereColumns - 1) = std::sqrt(0.75);
  return sphere;
}

}  // namespace phimap::lab
