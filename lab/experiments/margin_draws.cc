#include "lab/experiments/margin_draws.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/learn/margin.h"
#include "core/status/status_macros.h"
#include "lab/built_map.h"

namespace phimap::lab {
namespace {

// Number of rows that a build needs besides its given landmarks.
constexpr int64_t kSpareRows = 2;
// Tolerance for the rounding of sums of masses.
constexpr double kRounding = 1e-12;

double Dot(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += a[k] * b[k];
  return sum;
}

struct Mapped {
  Matrix<double> points;
  Matrix<double> separators;
};

absl::StatusOr<Mapped> Build(const MarginDistribution& of, const std::string& mapping,
                             int64_t stream_rows, uint64_t seed) {
  const Matrix<double> stream = of.Draw(stream_rows, seed);
  PHIMAP_ASSIGN_OR_RETURN(
      const BuiltMap map,
      BuiltMap::Build({.mapping = mapping, .kernel = "linear()"}, stream.view(), seed));
  Mapped mapped;
  PHIMAP_ASSIGN_OR_RETURN(mapped.points, map.Map(of.points.view()));
  PHIMAP_ASSIGN_OR_RETURN(mapped.separators, map.Map(of.separators.view()));
  return mapped;
}

// Returns the mass of the points whose normalised margin by a separator of features is under
// `margin`. The margin of a point is normalised by the length of its features if `by_features`,
// else by 1, its length in φ-space.
double ErrorAtMargin(const MarginDistribution& of, const Mapped& mapped, int64_t separator,
                     double margin, bool by_features) {
  const int64_t columns = mapped.points.cols();
  const double* w = mapped.separators.row(separator);
  const Separators separators{.norms = {std::sqrt(Dot(w, w, columns))}, .intercepts = {}};
  double error = 0;
  for (int64_t i = 0; i < mapped.points.rows(); ++i) {
    const double* x = mapped.points.row(i);
    const double scores[] = {Dot(w, x, columns)};
    const double square = by_features ? Dot(x, x, columns) : 1;
    if (NormalisedMargin(separators, scores, square, 1) < margin) error += of.masses[i];
  }
  return error;
}

}  // namespace

absl::StatusOr<SpanOutcome> DrawF2(const MarginDistribution& of, int64_t landmarks,
                                   const std::string& policy, uint64_t seed) {
  const int64_t spare = policy == "given" ? kSpareRows : landmarks / 8 + 10;
  PHIMAP_ASSIGN_OR_RETURN(const Mapped mapped,
                          Build(of,
                                absl::StrCat("f2(landmarks=", landmarks, ", policy=", policy,
                                             ", serving_type=float64)"),
                                landmarks + spare, seed));
  double lost = 0;
  for (int64_t i = 0; i < of.points.rows(); ++i) {
    const double whole = Dot(of.separators.row(0), of.points.row(i), of.points.cols());
    const double inside = Dot(mapped.separators.row(0), mapped.points.row(i), mapped.points.cols());
    if (std::abs(whole - inside) > of.margin / 2) lost += of.masses[i];
  }
  return SpanOutcome{
      .is_large = lost > of.error + kRounding,
      .loses_margin = ErrorAtMargin(of, mapped, 0, of.margin / 2, false) > of.error + kRounding};
}

absl::StatusOr<ProjectionOutcome> DrawF3(const MarginDistribution& of, int64_t landmarks,
                                         int64_t dimensions, uint64_t seed) {
  PHIMAP_ASSIGN_OR_RETURN(const Mapped mapped,
                          Build(of,
                                absl::StrCat("f3(landmarks=", landmarks, ", dimensions=",
                                             dimensions, ", policy=given, serving_type=float64)"),
                                landmarks + kSpareRows, seed));
  return ProjectionOutcome{.by_w = ErrorAtMargin(of, mapped, 0, of.margin / 4, true),
                           .by_half = ErrorAtMargin(of, mapped, 1, of.margin / 4, true)};
}

}  // namespace phimap::lab
