// Mean, variance and range of every column of a stream, in one pass.
#ifndef PHIMAP_CORE_LANDMARK_MOMENTS_H_
#define PHIMAP_CORE_LANDMARK_MOMENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Rows are added one by one, so the bits do not depend on the blocks in which they came. Columns
// are computed independently, so the bits do not depend on the vector width either.
//
// Method:   Welford's recurrence ("Note on a method for calculating corrected sums of squares",
//           Technometrics 4, 1962) on x − (first row). The shift keeps the digits of a column like
//           1e8 + noise.
// Accuracy: with u = 2^-53, σ the deviation and κ = √(1 + ((mean − first row)/σ)²), usually 1 to 4:
//           relative error of the variance at most about n·κ·u (Chan, Golub, LeVeque 1983), in
//           practice √n·u; error of the mean at most about u·|mean| + n·u·κσ.
// Range:    REQUIRES finite rows. Each column is summed in its own unit, a power of two near its
//           first deviations. This changes no bits and keeps squares from underflow: deviations of
//           1e-300 keep all their digits, although their variance is below the smallest float64.
//           Deviations above about 1e154 are rejected by CheckFinite.
// Cost:     8 operations per number. 56 bytes per column.
//
// Not thread-safe.
class ColumnMoments {
 public:
  // REQUIRES columns ≥ 1.
  explicit ColumnMoments(int64_t columns);

  // REQUIRES block.cols() == columns; rows finite.
  void Add(ConstMatrixView<double> block);

  int64_t columns() const { return columns_; }
  int64_t count() const { return count_; }

  // Everything below requires count() ≥ 1.

  double mean(int64_t column) const {
    return first_[column] + shifted_mean_[column] * unit_[column];
  }
  // Divided by n, not n − 1. May underflow to 0 although deviation() is not 0.
  double population_variance(int64_t column) const {
    return sum_squares_[column] / count_ * unit_[column] * unit_[column];
  }
  // Root of the population variance.
  double deviation(int64_t column) const;
  double min(int64_t column) const { return min_[column]; }
  double max(int64_t column) const { return max_[column]; }

  // Whether the column is constant up to rounding, so that it cannot be scaled to variance 1: its
  // range is at most 8u·max|x|. A correctly rounded operation leaves equal values at most 2u·|x|
  // apart, so a column that is constant up to the round-off of four operations counts as constant.
  // Different float32 values differ by at least 2^-24·|x|, which is far more. The range is exact,
  // so the result does not degrade with n.
  bool IsConstant(int64_t column) const;

  // Returns the factor for a column after its shift to mean 0: 1/σ, which makes its population
  // variance 1, or 1 if the column is constant. CheckScales reports a factor that is not finite.
  double StandardScale(int64_t column) const;

  // Returns INVALID_ARGUMENT (VALUES_TOO_LARGE, field "examples", with the column) if a mean or a
  // variance is not finite.
  absl::Status CheckFinite() const;
  // Returns INVALID_ARGUMENT (VALUES_TOO_SMALL, field "examples", with the column) if a
  // StandardScale is not finite, which happens for deviations below about 5.6e-309.
  absl::Status CheckScales() const;

 private:
  // Enlarges the unit of each column whose deviations became too large for it. The conversion is
  // exact, except for numbers smaller than 2^-600 of the new ones, so it may be done at any time.
  void WidenUnits();

  int64_t columns_;
  int64_t count_ = 0;
  std::vector<double> first_;         // the first row
  std::vector<double> unit_;          // a power of two, 2^-1000 to 2^1000
  std::vector<double> per_unit_;      // 1/unit
  std::vector<double> shifted_mean_;  // of (x − first)/unit
  std::vector<double> sum_squares_;   // Σ ((x − mean)/unit)²
  std::vector<double> min_;
  std::vector<double> max_;
};

// Returns the population variance of all entries of the stream as one list of count × columns
// numbers; `gamma=scale` is 1/(columns · this). With `standardized`, returns the variance after
// standardisation. That is the share of columns that are not constant: these have mean 0 and
// variance 1, and constant columns are 0. If `shifted` is false, standardised columns are only
// scaled and keep their means. A result of 0 means that all entries are equal; +inf means that the
// columns' means lie more than about 1e154 apart. REQUIRES count() ≥ 1.
//
// Accuracy: relative error about (columns + 4)·2^-53 beyond that of the columns' moments.
double EntryVariance(const ColumnMoments& moments, bool standardized, bool shifted = true);

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_MOMENTS_H_
