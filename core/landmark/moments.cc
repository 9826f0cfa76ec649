#include "core/landmark/moments.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"

namespace phimap {
namespace {

// Smallest exponent of a column's unit, which is a power of two. A unit begins with this exponent.
// The largest exponent is −kLeastExponent. With these limits, 1/unit is always a normal number.
constexpr int kLeastExponent = -1000;
// Largest deviation of a column in units; a larger deviation enlarges the column's unit. The square
// of this number is far from overflow, and the square of its reciprocal is far from underflow.
constexpr double kMostUnits = 0x1p400;

// Comparisons are written as selections, which compile to vector minima and maxima.
void WidenRange(const double* __restrict__ x, int64_t columns, double* __restrict__ min,
                double* __restrict__ max) {
  for (int64_t j = 0; j < columns; ++j) {
    min[j] = x[j] < min[j] ? x[j] : min[j];
    max[j] = x[j] > max[j] ? x[j] : max[j];
  }
}

// One Welford step for every column.
void AddRow(const double* __restrict__ x, int64_t columns, double inverse_count,
            const double* __restrict__ first, const double* __restrict__ per_unit,
            double* __restrict__ mean, double* __restrict__ sum_squares) {
  for (int64_t j = 0; j < columns; ++j) {
    const double y = (x[j] - first[j]) * per_unit[j];
    const double delta = y - mean[j];
    const double new_mean = mean[j] + delta * inverse_count;
    sum_squares[j] += delta * (y - new_mean);
    mean[j] = new_mean;
  }
}

}  // namespace

ColumnMoments::ColumnMoments(int64_t columns)
    : columns_(columns),
      first_(static_cast<size_t>(columns)),
      unit_(static_cast<size_t>(columns), std::ldexp(1.0, kLeastExponent)),
      per_unit_(static_cast<size_t>(columns), std::ldexp(1.0, -kLeastExponent)),
      shifted_mean_(static_cast<size_t>(columns)),
      sum_squares_(static_cast<size_t>(columns)),
      min_(static_cast<size_t>(columns)),
      max_(static_cast<size_t>(columns)) {
  PHIMAP_CHECK(columns >= 1);
}

void ColumnMoments::Add(ConstMatrixView<double> block) {
  PHIMAP_CHECK(block.cols() == columns_);
  if (block.rows() == 0) return;
  if (count_ == 0) {
    for (std::vector<double>* start : {&first_, &min_, &max_}) {
      std::copy_n(block.row(0), columns_, start->begin());
    }
  }
  for (int64_t i = 0; i < block.rows(); ++i) {
    WidenRange(block.row(i), columns_, min_.data(), max_.data());
  }
  WidenUnits();
  for (int64_t i = 0; i < block.rows(); ++i) {
    ++count_;
    AddRow(block.row(i), columns_, 1.0 / static_cast<double>(count_), first_.data(),
           per_unit_.data(), shifted_mean_.data(), sum_squares_.data());
  }
}

void ColumnMoments::WidenUnits() {
  for (int64_t j = 0; j < columns_; ++j) {
    const double furthest = std::max(max_[j] - first_[j], first_[j] - min_[j]);
    // If the difference overflows, so does the variance, and CheckFinite reports it.
    if (furthest * per_unit_[j] <= kMostUnits || !std::isfinite(furthest)) continue;
    const int before = std::ilogb(unit_[j]);
    const int exponent = std::clamp(std::ilogb(furthest), kLeastExponent, -kLeastExponent);
    unit_[j] = std::ldexp(1.0, exponent);
    per_unit_[j] = std::ldexp(1.0, -exponent);
    shifted_mean_[j] = std::ldexp(shifted_mean_[j], before - exponent);
    sum_squares_[j] = std::ldexp(sum_squares_[j], 2 * (before - exponent));
  }
}

double ColumnMoments::deviation(int64_t column) const {
  return std::sqrt(sum_squares_[column] / static_cast<double>(count_)) * unit_[column];
}

bool ColumnMoments::IsConstant(int64_t column) const {
  const double magnitude = std::max(std::abs(min_[column]), std::abs(max_[column]));
  const double range = max_[column] - min_[column];
  return range <= 0x1p-50 * magnitude;
}

double ColumnMoments::StandardScale(int64_t column) const {
  return IsConstant(column) ? 1.0 : 1.0 / deviation(column);
}

absl::Status ColumnMoments::CheckScales() const {
  for (int64_t j = 0; j < columns_; ++j) {
    if (std::isfinite(StandardScale(j))) continue;
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kValuesTooSmall, "examples",
        absl::StrCat("column ", j, " cannot be standardized: its deviation is ", deviation(j),
                     ", and the reciprocal of that overflows float64; scale the column up, or "
                     "build without standardize"),
        {{"column", absl::StrCat(j)},
         {"min", absl::StrCat(min_[j])},
         {"max", absl::StrCat(max_[j])}});
  }
  return absl::OkStatus();
}

absl::Status ColumnMoments::CheckFinite() const {
  for (int64_t j = 0; j < columns_; ++j) {
    if (std::isfinite(mean(j)) && std::isfinite(population_variance(j))) continue;
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kValuesTooLarge, "examples",
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
  // The total variance is the mean of the columns' variances plus the variance of their means,
  // because all columns have the same count. The first mean is subtracted from all means, so that a
  // common offset cancels before it is squared.
  const auto scale = [&](int64_t j) { return standardized ? moments.StandardScale(j) : 1.0; };
  const double first = moments.mean(0) * scale(0);
  double mean = 0;
  for (int64_t j = 0; j < columns; ++j) mean += moments.mean(j) * scale(j) - first;
  mean /= static_cast<double>(columns);
  double sum = 0;
  for (int64_t j = 0; j < columns; ++j) {
    const double deviation = moments.mean(j) * scale(j) - first - mean;
    // A scaled column has variance 1.
    const double variance =
        standardized && !moments.IsConstant(j) ? 1 : moments.population_variance(j);
    sum += variance + deviation * deviation;
  }
  return sum / static_cast<double>(columns);
}

}  // namespace phimap
