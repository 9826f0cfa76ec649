#include "lab/experiments/ams_distances.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/kernel/kernel_block.h"
#include "core/linalg/blas.h"
#include "core/mapping/projection/random_projection.h"
#include "core/plan/plan.h"
#include "core/random/stream_ids.h"
#include "core/theory/projection_bounds.h"

namespace phimap::lab {
namespace {

constexpr int64_t kDimensions[] = {8, 16, 32, 64, 128, 256, 512, 1024};

// Inner products ⟨x_i, y_j⟩, and the squared lengths of x_i and y_j.
struct Products {
  Matrix<double> inner;
  std::vector<double> x_norms;
  std::vector<double> y_norms;

  Products(const Matrix<double>& x, const Matrix<double>& y)
      : inner(Matrix<double>::Uninit(x.rows(), y.rows())),
        x_norms(SquaredNorms(x.view())),
        y_norms(SquaredNorms(y.view())) {
    MultiplyTransposed(1, x.view(), y.view(), 0, inner.view());
  }
  double lengths(int64_t i, int64_t j) const {
    return x_norms[static_cast<size_t>(i)] + y_norms[static_cast<size_t>(j)];
  }
  double distance(int64_t i, int64_t j) const { return lengths(i, j) - 2 * inner(i, j); }
};

DistanceChange ChangeOf(const Products& before, const Products& after, double e) {
  DistanceChange change;
  std::vector<double> ratios;
  for (int64_t i = 0; i < before.inner.rows(); ++i) {
    for (int64_t j = 0; j < before.inner.cols(); ++j) {
      const double lengths = before.lengths(i, j);
      change.inner =
          std::max(change.inner, std::abs(after.inner(i, j) - before.inner(i, j)) / lengths);
      // Skips equal rows: they stay equal, and their computed distance is only rounding.
      if (before.distance(i, j) < 1e-9 * lengths) continue;
      ratios.push_back(after.distance(i, j) / before.distance(i, j));
    }
  }
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  change.lowest_ratio = *low;
  change.highest_ratio = *high;
  change.mean_ratio = Mean(ratios);
  std::vector<double> errors;
  for (const double ratio : ratios) errors.push_back(std::abs(ratio - 1));
  std::sort(errors.begin(), errors.end());
  change.median_error = errors[errors.size() / 2];
  change.error_95 = errors[errors.size() * 95 / 100];
  change.largest_error = errors.back();
  const auto over = errors.end() - std::upper_bound(errors.begin(), errors.end(), e);
  change.share_over = static_cast<double>(over) / static_cast<double>(errors.size());
  return change;
}

// Returns the smallest e for which Theorem 6 requires at most s sums; nullopt if s is too small for
// every e < 1.
std::optional<double> DistortionOf(int64_t s, double points) {
  const auto enough = [&](double e) {
    const std::optional<int64_t> needed = ProjectedKernelDimensions(e, points, kDistanceDoubt);
    return needed.has_value() && *needed <= s;
  };
  double low = 1e-6;
  double high = 1 - 1e-9;
  if (!enough(high)) return std::nullopt;
  for (int step = 0; step < 60; ++step) {
    const double e = (low + high) / 2;
    (enough(e) ? high : low) = e;
  }
  return high;
}

}  // namespace

Matrix<double> ProjectedRows(const Matrix<double>& rows, int64_t s, uint64_t seed) {
  InputStage input{.columns = rows.cols()};
  ProjectInput(s, seed, input);
  return AfterInputStage(input, rows.view());
}

Matrix<double> SampledColumns(const Matrix<double>& rows, int64_t s, uint64_t seed) {
  const std::vector<int64_t> columns =
      FirstOfPermutation(rows.cols(), s, RandomStream(seed, StreamId::kLabLabels));
  const double scale = std::sqrt(static_cast<double>(rows.cols()) / static_cast<double>(s));
  Matrix<double> sampled = Matrix<double>::Uninit(rows.rows(), s);
  for (int64_t i = 0; i < rows.rows(); ++i) {
    for (int64_t k = 0; k < s; ++k) {
      sampled(i, k) = scale * rows(i, columns[static_cast<size_t>(k)]);
    }
  }
  return sampled;
}

void MeasureDistances(const Options& options, const DistancePoints& points,
                      std::vector<DistanceCase>& all) {
  const Products before(points.x, points.y);
  for (const int64_t s : kDimensions) {
    DistanceCase coins{.data = points.data, .way = "coins", .columns = points.columns(), .s = s};
    coins.all_e = DistortionOf(s, points.count());
    coins.pair_e = LengthDistortion(Tier::kDerived, s, kDistanceDoubt);
    DistanceCase columns{
        .data = points.data, .way = "columns", .columns = points.columns(), .s = s};
    for (int64_t run = 0; run < options.Runs(20, 3); ++run) {
      const uint64_t seed = options.Seed(run);
      const auto add = [&](auto transform, DistanceCase& to) {
        to.draws.push_back(
            ChangeOf(before, Products(transform(points.x, s, seed), transform(points.y, s, seed)),
                     coins.pair_e.value_or(1)));
      };
      add(ProjectedRows, coins);
      if (s < points.columns()) add(SampledColumns, columns);
    }
    all.push_back(std::move(coins));
    if (!columns.draws.empty()) all.push_back(std::move(columns));
  }
}

}  // namespace phimap::lab
