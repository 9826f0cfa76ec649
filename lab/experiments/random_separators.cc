#include "lab/experiments/random_separators.h"

#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "core/random/stream_ids.h"
#include "core/status/status_macros.h"
#include "lab/built_map.h"
#include "lab/learning.h"

namespace phimap::lab {
namespace {

constexpr int64_t kColumns = 10;
constexpr int64_t kExamples = 300;
constexpr int64_t kSeparatorsOfBuild = 2048;

// Returns rows where row 0 is w = e_0, and row 1 + j has the angle kSeparatorDegrees[j] with w,
// each in a plane of its own.
Matrix<double> RowsAtAngles() {
  Matrix<double> rows(1 + std::ssize(kSeparatorDegrees), kColumns);
  rows(0, 0) = 1;
  for (int64_t j = 0; j < std::ssize(kSeparatorDegrees); ++j) {
    const double angle = kSeparatorDegrees[j] * std::numbers::pi / 180;
    rows(1 + j, 0) = std::cos(angle);
    rows(1 + j, 1 + j % (kColumns - 1)) = std::sin(angle);
  }
  return rows;
}

// Appends the error of each separator h of the map with h·w >= 0. `of_w` holds the values h·w.
absl::Status AddErrors(const BuiltMap& map, const Examples& examples, const Matrix<double>& of_w,
                       std::vector<double>& errors) {
  PHIMAP_ASSIGN_OR_RETURN(const Examples values, Mapped(map, examples));
  const int64_t n = values.rows.rows();
  std::vector<int64_t> wrong(static_cast<size_t>(of_w.cols()), 0);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t h = 0; h < of_w.cols(); ++h) {
      wrong[h] += (values.rows(i, h) >= 0) != (values.labels[i] == 1);
    }
  }
  for (int64_t h = 0; h < of_w.cols(); ++h) {
    if (of_w(0, h) >= 0) {
      errors.push_back(static_cast<double>(wrong[h]) / static_cast<double>(n));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Examples SphereExamples(double margin, uint64_t seed) {
  RandomCursor normals(RandomStream(seed, StreamId::kLabRows));
  RandomCursor coins(RandomStream(seed, StreamId::kLabLabels));
  Examples examples{.rows = Matrix<double>(kExamples, kColumns), .labels = {}};
  for (int64_t i = 0; i < kExamples; ++i) {
    double* row = examples.rows.row(i);
    double square = 0;
    for (int64_t k = 1; k < kColumns; ++k) {
      row[k] = normals.Normal();
      square += row[k] * row[k];
    }
    const int32_t label = static_cast<int32_t>(coins.Bits64() & 1);
    for (int64_t k = 1; k < kColumns; ++k) row[k] *= std::sqrt((1 - margin * margin) / square);
    row[0] = label == 1 ? margin : -margin;
    examples.labels.push_back(label);
  }
  return examples;
}

Examples FourPointExamples(double margin) {
  Examples examples{.rows = Matrix<double>(4, kColumns), .labels = {1, 1, 0, 0}};
  for (int64_t i = 0; i < 4; ++i) {
    examples.rows(i, 0) = i < 2 ? margin : -margin;
    examples.rows(i, 1) = (i % 2 == 0 ? 1 : -1) * std::sqrt(1 - margin * margin);
  }
  return examples;
}

absl::StatusOr<SeparatorDraws> DrawSeparators(const Options& options) {
  SeparatorDraws drawn;
  const Matrix<double> rows = RowsAtAngles();
  const int64_t builds = options.Runs(512, 32);
  for (int64_t build = 0; build < builds; ++build) {
    const uint64_t seed = options.Seed(1 + build);
    PHIMAP_ASSIGN_OR_RETURN(
        const BuiltMap map,
        BuiltMap::Build({.mapping = absl::StrCat("random_projection(dimensions=",
                                                 kSeparatorsOfBuild, ", serving_type=float64)"),
                         .kernel = "linear()"},
                        rows.view(), seed));
    PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> values, map.Map(rows.view()));
    for (int64_t h = 0; h < values.cols(); ++h) {
      if (values(0, h) < 0) continue;
      ++drawn.separators;
      for (size_t j = 0; j < std::size(kSeparatorDegrees); ++j) {
        drawn.wrong[j] += values(static_cast<int64_t>(1 + j), h) <= 0 ? 1 : 0;
      }
    }
    for (size_t m = 0; m < std::size(kSeparatorMargins); ++m) {
      PHIMAP_RETURN_IF_ERROR(
          AddErrors(map, SphereExamples(kSeparatorMargins[m], seed), values, drawn.sphere[m]));
      PHIMAP_RETURN_IF_ERROR(
          AddErrors(map, FourPointExamples(kSeparatorMargins[m]), values, drawn.four[m]));
    }
  }
  return drawn;
}

}  // namespace phimap::lab
