// Distances after a projection of rows, either to random signed sums of the columns ("coins") or to
// some of the columns.
#ifndef PHIMAP_LAB_EXPERIMENTS_AMS_DISTANCES_H_
#define PHIMAP_LAB_EXPERIMENTS_AMS_DISTANCES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/linalg/matrix.h"
#include "lab/experiment.h"
#include "lab/statistics.h"

namespace phimap::lab {

inline constexpr double kDistanceDoubt = 0.05;

// Rows x_i and landmarks y_j, whose distances are measured.
struct DistancePoints {
  std::string data;
  Matrix<double> x;
  Matrix<double> y;

  int64_t columns() const { return x.cols(); }
  double count() const { return static_cast<double>(x.rows() + y.rows()); }
};

// Effect of a projection on all pairs: the ratios ‖x̂ − ŷ‖²/‖x − y‖², and the errors, which are the
// absolute differences of the ratios from 1.
struct DistanceChange {
  double mean_ratio = 0;
  double lowest_ratio = 0;
  double highest_ratio = 0;
  double median_error = 0;
  double error_95 = 0;
  double largest_error = 0;
  // Share of pairs whose error is larger than a given e.
  double share_over = 0;
  // The largest change of an inner product, divided by ‖x‖² + ‖y‖².
  double inner = 0;
};

// All draws of one kind of projection to s dimensions, on one data set.
struct DistanceCase {
  std::string data;
  // "coins" (sums of coins) or "columns" (sampled columns).
  std::string way;
  int64_t columns = 0;
  int64_t s = 0;
  // all_e: the e that holds with probability .95 for the distances and inner products of all pairs
  // at once. pair_e: the e that holds with probability .95 for a single distance. nullopt if there
  // is no such e.
  std::optional<double> all_e;
  std::optional<double> pair_e;
  std::vector<DistanceChange> draws;

  std::vector<double> Each(double DistanceChange::*member) const {
    std::vector<double> values;
    for (const DistanceChange& draw : draws) values.push_back(draw.*member);
    return values;
  }
  double MeanOf(double DistanceChange::*member) const { return Mean(Each(member)); }
};

// Appends the cases of s = 8, 16 … 1,024. Columns are sampled only if there are more than s.
void MeasureDistances(const Options& options, const DistancePoints& points,
                      std::vector<DistanceCase>& all);

// Returns the rows after phimap's input projection to s sums of coins.
Matrix<double> ProjectedRows(const Matrix<double>& rows, int64_t s, uint64_t seed);
// Returns s of the d columns, multiplied by √(d/s).
Matrix<double> SampledColumns(const Matrix<double>& rows, int64_t s, uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_AMS_DISTANCES_H_
