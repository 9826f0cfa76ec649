#include "lab/experiments/sh_planes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/learn/margin.h"
#include "core/random/stream_ids.h"
#include "core/status/status_macros.h"
#include "lab/built_map.h"

namespace phimap::lab {
namespace {

constexpr int64_t kColumns = 100;
constexpr int64_t kPointsOfClass = 5;
constexpr double kDeviation = 0.07;

double Dot(const double* a, const double* b, int64_t count) {
  return std::inner_product(a, a + count, b, 0.0);
}

double Length(const double* a, int64_t count) { return std::sqrt(Dot(a, a, count)); }

std::vector<double> DrawDirection(RandomCursor& normals) {
  std::vector<double> u(kColumns);
  for (double& value : u) value = normals.Normal();
  const double length = Length(u.data(), kColumns);
  for (double& value : u) value /= length;
  return u;
}

absl::StatusOr<Matrix<double>> Projected(const Matrix<double>& rows, const std::string& mapping,
                                         uint64_t seed) {
  PHIMAP_ASSIGN_OR_RETURN(
      const BuiltMap map,
      BuiltMap::Build({.mapping = mapping, .kernel = "linear()"}, rows.view(), seed));
  return map.Map(rows.view());
}

// Returns v = Σ_y R_y w_y with unit vectors w_y. The features have a block of n columns per class.
std::vector<double> OneVector(const Planes& planes, const Matrix<double>& features, int64_t n) {
  std::vector<double> v(static_cast<size_t>(n));
  for (int64_t y = 0; y < planes.classes; ++y) {
    const double length = Length(planes.rows.row(y), planes.rows.cols());
    for (int64_t k = 0; k < n; ++k) v[k] += features(y, y * n + k) / length;
  }
  return v;
}

double OneVectorMargin(const Planes& planes, const Matrix<double>& features) {
  const int64_t n = features.cols() / planes.classes;
  const std::vector<double> v = OneVector(planes, features, n);
  double least = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < planes.points(); ++i) {
    const double* const x = features.row(planes.separators + i);
    const double* const own = x + planes.labels[i] * n;
    for (int64_t y = 0; y < planes.classes; ++y) {
      if (y == planes.labels[i]) continue;
      const double* const other = x + y * n;
      const double lead = Dot(v.data(), own, n) - Dot(v.data(), other, n);
      const double lengths = std::hypot(Length(own, n), Length(other, n));
      least = std::min(least, lead / (Length(v.data(), n) * lengths));
    }
  }
  return least;
}

}  // namespace

Planes DrawPlanes(const std::vector<double>& offsets, uint64_t seed) {
  RandomCursor normals(RandomStream(seed, StreamId::kLabRows));
  const std::vector<double> u = DrawDirection(normals);
  Planes planes;
  planes.classes = static_cast<int64_t>(offsets.size());
  const bool lifted = planes.classes > 2;
  planes.separators = lifted ? planes.classes : 1;
  planes.rows = Matrix<double>(planes.separators + planes.classes * kPointsOfClass,
                               kColumns + (lifted ? 1 : 0));
  for (int64_t i = 0; i < planes.rows.rows(); ++i) {
    double* const row = planes.rows.row(i);
    const bool is_point = i >= planes.separators;
    const int64_t label = is_point ? (i - planes.separators) % planes.classes : i;
    if (is_point) {
      planes.labels.push_back(static_cast<int>(label));
      for (int64_t k = 0; k < kColumns; ++k) row[k] = kDeviation * normals.Normal();
    }
    const double offset = is_point || lifted ? offsets[label] : 1;
    const double along = Dot(row, u.data(), kColumns);
    for (int64_t k = 0; k < kColumns; ++k) row[k] += (offset - along) * u[k];
    if (lifted) row[kColumns] = 1;
  }
  return planes;
}

PlaneMargins MarginsOf(const Planes& planes, const Matrix<double>& rows) {
  const int64_t columns = rows.cols();
  Separators separators;
  for (int64_t y = 0; y < planes.separators; ++y) {
    separators.norms.push_back(Length(rows.row(y), columns));
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  PlaneMargins least = {.normalised = kInfinity, .unnormalised = kInfinity};
  std::vector<double> scores(static_cast<size_t>(planes.separators));
  for (int64_t i = 0; i < planes.points(); ++i) {
    const double* const x = rows.row(planes.separators + i);
    for (int64_t y = 0; y < planes.separators; ++y) scores[y] = Dot(rows.row(y), x, columns);
    const double square = Dot(x, x, columns);
    least.normalised =
        std::min(least.normalised, NormalisedMargin(separators, scores, square, planes.labels[i]));
    least.unnormalised =
        std::min(least.unnormalised, UnnormalisedMargin(separators, scores, planes.labels[i]));
  }
  return least;
}

absl::StatusOr<std::vector<PlaneMargins>> DrawMargins(const Planes& planes, int64_t n,
                                                      int64_t draws, uint64_t seed) {
  const std::string mapping =
      absl::StrCat("random_projection(dimensions=", n, ", serving_type=float64)");
  std::vector<PlaneMargins> margins;
  for (int64_t i = 0; i < draws; ++i) {
    PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> features,
                            Projected(planes.rows, mapping, seed + static_cast<uint64_t>(i)));
    margins.push_back(MarginsOf(planes, features));
  }
  return margins;
}

absl::StatusOr<std::vector<double>> DrawOneVectorMargins(const Planes& planes, int64_t n,
                                                         int64_t draws, uint64_t seed) {
  const std::string mapping = absl::StrCat("multiclass(classes=", planes.classes,
                                           ", dimensions=", n, ", serving_type=float64)");
  std::vector<double> margins;
  for (int64_t i = 0; i < draws; ++i) {
    PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> features,
                            Projected(planes.rows, mapping, seed + static_cast<uint64_t>(i)));
    margins.push_back(OneVectorMargin(planes, features));
  }
  return margins;
}

}  // namespace phimap::lab
