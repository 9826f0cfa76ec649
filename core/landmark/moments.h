// Mean, variance and range of every column of a stream, in one pass.
#ifndef PHIMAP_CORE_LANDMARK_MOMENTS_H_
#define PHIMAP_CORE_LANDMARK_MOMENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Rows are taken one by one, so the bits do not depend on the blocks they came in; the arithmetic
// of a column never mixes with another's, so they do not depend on the vector width either.
//
// Method:   Welford's recurrence ("Note on a method for calculating corrected sums of squares",
//           Technometrics 4, 1962) on x − (first row). The shift keeps the digits of a column like
//           1e8 + noise.
// Accuracy: with u = 2^-53, σ the deviation and κ = √(1 + ((mean − first row)/σ)²), usually 1 to 4:
//           relative error of the variance at most about n·κ·u (Chan, Golub, LeVeque 1983), in
//           practice √n·u; error of the mean at most about u·|mean| + n·u·κσ.
// Range:    rows are finite (REQUIRES). Each column is added up in units of its own, a power of two
//           near its first deviations, which changes no bit and keeps squares of any numbers from
//           underflow: deviations of 1e-300 have all their digits, although their variance has no
//           float64. Deviations above about 1e154 are refused: see CheckFinite.
// Cost:     8 operations a number. 56 bytes a column.
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
  // Divided by n, not by n − 1. A variance below the smallest float64 is 0, although the deviation
  // is not.
  double population_variance(int64_t column) const {
    return sum_squares_[column] / count_ * unit_[column] * unit_[column];
  }
  // Its root.
  double deviation(int64_t column) const;
  double min(int64_t column) const { return min_[column]; }
  double max(int64_t column) const { return max_[column]; }

  // Whether the column holds nothing that could be scaled to variance 1: its range is within
  // 8u·max|x|. A correctly rounded operation leaves equal values at most 2u·|x| apart, so a column
  // that is constant up to the round-off of four operations counts as constant. float32 data differ
  // by 2^-24·|x| or more when they differ, far above this. The range is exact: the answer does not
  // degrade with n.
  bool IsConstant(int64_t column) const;

  // Factor for each column after its shift to mean 0: 1/σ, so that its population variance becomes
  // 1; 1 where the column is constant, which is only shifted. CheckScales names a column where it
  // is not finite.
  double StandardScale(int64_t column) const;

  // INVALID_ARGUMENT, VALUES_TOO_LARGE on "examples" with the column, if a mean or a variance is
  // not a finite number.
  absl::Status CheckFinite() const;
  // INVALID_ARGUMENT, VALUES_TOO_SMALL on "examples" with the column, if a StandardScale is not
  // finite, as for deviations below about 5.6e-309.
  absl::Status CheckScales() const;

 private:
  // Changes the unit of columns whose values no longer fit the present unit. The change is exact
  // except for parts below 2^-600 of the new values, so it may be made at any time.
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

// Population variance of all entries of the stream, as one list of count × columns numbers;
// `gamma=scale` is 1/(columns · this). With `standardized`, of the stream after standardisation:
// the share of columns that are not constant, because those have mean 0 and variance 1 and the
// others are 0. 0 means that no entry varies and no scale exists; +inf that the columns' means lie
// more than about 1e154 apart. REQUIRES count() ≥ 1.
//
// Accuracy: relative error about (columns + 4)·2^-53 beyond that of the columns' moments.
//
// `shifted` false: standardised columns are scaled and keep their means.
double EntryVariance(const ColumnMoments& moments, bool standardized, bool shifted = true);

}  // namespace phimap

#endif  // PHIMAP_CORE_LANDMARK_MOMENTS_H_
