// Mean, variance and range of every column of a stream, in one pass.
#ifndef PHIMAP_CORE_LANDMARK_MOMENTS_H_
#define PHIMAP_CORE_LANDMARK_MOMENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Count, mean, variance and range of each column of a stream of rows. Rows are added one by one, so
// the results do not depend on how the stream is divided into blocks, not even in the last bit.
// Columns are computed independently, so the results do not depend on the vector width either.
//
// Method:   Welford's recurrence ("Note on a method for calculating corrected sums of squares",
//           Technometrics 4, 1962) on x − (first row). The subtraction keeps the digits of a column
//           such as 1e8 + noise.
// Accuracy: let u = 2^-53, n the number of rows, σ the deviation of a column, and κ = √(1 + ((mean
//           − first row)/σ)²), usually 1 to 4. The relative error of the variance is at most about
//           n·κ·u (Chan, Golub, LeVeque 1983), in practice √n·u. The error of the mean is at most
//           about u·|mean| + n·u·κσ.
// Range:    REQUIRES finite rows. Each column is summed in its own unit, a power of two near its
//           first deviations. This changes no digits, and it keeps squares from underflow:
//           deviations of 1e-300 keep all their digits, although their variance is below the
//           smallest float64. CheckFinite rejects deviations above about 1e154.
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

  // All functions below require count() ≥ 1.

  double mean(int64_t column) const {
    return first_[column] + shifted_mean_[column] * unit_[column];
  }
  // Returns the sum of squares divided by n, not n − 1. May underflow to 0 although deviation() is
  // not 0.
  double population_variance(int64_t column) const {
    return sum_squares_[column] / count_ * unit_[column] * unit_[column];
  }
  // Root of the population variance.
  double deviation(int64_t column) const;
  double min(int64_t column) const { return min_[column]; }
  double max(int64_t column) const { return max_[column]; }

  // Whether the column is constant up to rounding, so that it cannot be scaled to variance 1. This
  // is so if its range is at most 8u·max|x|, where u = 2^-53 and x are the column's values.
  //
  // The limit allows for the round-off of four operations: one correctly rounded operation leaves
  // equal values at most 2u·|x| apart. Different float32 values are never taken for equal, because
  // they differ by at least 2^-24·|x|. The range is exact, so the result does not degrade with the
  // number of rows.
  bool IsConstant(int64_t column) const;

  // Returns the factor that scales a column of mean 0 to population variance 1: 1/σ, where σ is the
  // column's deviation. Returns 1 if the column is constant. CheckScales reports a factor that is
  // not finite.
  double StandardScale(int64_t column) const;

  // Returns INVALID_ARGUMENT (VALUES_TOO_LARGE, field "examples", with the column) if a mean or a
  // variance is not finite.
  absl::Status CheckFinite() const;
  // Returns INVALID_ARGUMENT (VALUES_TOO_SMALL, field "examples", with the column) if a
  // StandardScale is not finite, which happens for deviations below about 5.6e-309.
  absl::Status CheckScales() const;

 private:
  // Enlarges the unit of each column whose deviations have become too large for its unit. May be
  // called at any time, because the conversion is exact except for numbers below 2^-600 of the new
  // unit.
  void WidenUnits();

  int64_t columns_;
  int64_t count_ = 0;
  std::vector<double> first_;         // the first row
  std::vector<double> unit_;          // a power of two, 2^-1000 to 2^1000
  std::vector<double> per_unit_;      // 1/unit
  std::vector<double> shifted_mean_;  // mean of (x − first)/unit
  std::vector<double> sum_squares_;   // Σ ((x − mean)/unit)²
  std::vector<double> min_;
  std::vector<double> max_;
};

// Returns the population variance of all entries of the stream, as one list of count × columns
// numbers. The parameter `gamma=scale` is 1/(columns · this variance).
//
// If `standardized`, returns the variance after standardisation. That is the share of columns that
// are not constant, because these columns have mean 0 and variance 1, while constant columns are 0.
// If `shifted` is false, standardised columns are only scaled and keep their means.
//
// A result of 0 means that all entries are equal. A result of +inf means that the columns' means
// lie more than about 1e154 apart. REQUIRES count() ≥ 1.
//
// Accuracy: relative error about (columns + 4)·2^-53, in addition to that of the columns' moments.
double EntryVariance(const ColumnMoments& moments, bool standardized, bool shifted = true);

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_MOMENTS_H_
