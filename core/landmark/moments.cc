#include "core/landmark/moments.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"

namespace phimap {
namespace {

// One Welford step for every column. Comparisons are written as selections, which become vector
// minima and maxima.
void AddRow(const double* __restrict__ x, int64_t columns, double inverse_count,
            const double* __restrict__ first, double* __restrict__ mean,
            double* __restrict__ sum_squares, double* __restrict__ min, double* __restrict__ max) {
  for (int64_t j = 0; j < columns; ++j) {
    const double y = x[j] - first[j];
    const double delta = y - mean[j];
    const double new_mean = mean[j] + delta * inverse_count;
    sum_squares[j] += delta * (y - new_mean);
    mean[j] = new_mean;
    min[j] = x[j] < min[j] ? x[j] : min[j];
    max[j] = x[j] > max[j] ? x[j] : max[j];
  }
}

}  // namespace

ColumnMoments::ColumnMoments(int64_t columns)
    : columns_(columns),
      first_(static_cast<size_t>(columns)),
      shifted_mean_(static_cast<size_t>(columns)),
      sum_squares_(static_cast<size_t>(columns)),
      min_(static_cast<size_t>(columns)),
      max_(static_cast<size_t>(columns)) {
  PHIMAP_CHECK(columns >= 1);
}

void ColumnMoments::Add(ConstMatrixView<double> block) {
  PHIMAP_CHECK(block.cols() == columns_);
  for (int64_t i = 0; i < block.rows(); ++i) {
    const double* row = block.row(i);
    if (count_ == 0) {
      for (std::vector<double>* start : {&first_, &min_, &max_}) {
        std::copy_n(row, columns_, start->begin());
      }
    }
    ++count_;
    AddRow(row, columns_, 1.0 / static_cast<double>(count_), first_.data(), shifted_mean_.data(),
           sum_squares_.data(), min_.data(), max_.data());
  }
}

bool ColumnMoments::IsConstant(int64_t column) const {
  const double magnitude = std::max(std::abs(min_[column]), std::abs(max_[column]));
  const double range = max_[column] - min_[column];
  return range <= 0x1p-50 * magnitude ||
         population_variance(column) < std::numeric_limits<double>::min();
}

double ColumnMoments::StandardScale(int64_t column) const {
  return IsConstant(column) ? 1.0 : 1.0 / std::sqrt(population_variance(column));
}

absl::Status ColumnMoments::CheckFinite() const {
  for (int64_t j = 0; j < columns_; ++j) {
    if (std::isfinite(mean(j)) && std::isfinite(population_variance(j))) continue;
    return MakeError(
        absl::StatusCode::kInvalidArgument, "VALUES_TOO_LARGE", "examples",
        absl::StrCat("the variance of column ", j, " overflows: its values reach from ", min_[j],
                     " to ", max_[j], "; scale the column down"),
        {{"column", absl::StrCat(j)},
         {"min", absl::StrCat(min_[j])},
         {"max", absl::StrCat(max_[j])}});
  }
  return absl::OkStatus();
}

double EntryVariance(const ColumnMoments& moments, bool standardized, bool shifted) {
  const int64_t columns = moments.columns();
  if (standardized && shifted) {
    int64_t varying = 0;
    for (int64_t j = 0; j < columns; ++j) varying += moments.IsConstant(j) ? 0 : 1;
    return static_cast<double>(varying) / static_cast<double>(columns);
  }
  // Law of total variance over the columns, which all have the same count: mean of the variances
  // plus variance of the means. The means are shifted by the first, so that a common offset cancels
  // before it is squared.
  const auto scale = [&](int64_t j) { return standardized ? moments.StandardScale(j) : 1.0; };
  const double first = moments.mean(0) * scale(0);
  double mean = 0;
  for (int64_t j = 0; j < columns; ++j) mean += moments.mean(j) * scale(j) - first;
  mean /= static_cast<double>(columns);
  double sum = 0;
  for (int64_t j = 0; j < columns; ++j) {
    const double deviation = moments.mean(j) * scale(j) - first - mean;
    sum += moments.population_variance(j) * scale(j) * scale(j) + deviation * deviation;
  }
  return sum / static_cast<double>(columns);
}

}  // namespace phimap
