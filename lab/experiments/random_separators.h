// Random separators, and their errors on data with a known margin.
#ifndef PHIMAP_LAB_EXPERIMENTS_RANDOM_SEPARATORS_H_
#define PHIMAP_LAB_EXPERIMENTS_RANDOM_SEPARATORS_H_

#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/status/statusor.h"
#include "lab/examples.h"
#include "lab/experiment.h"

namespace phimap::lab {

inline constexpr int kSeparatorDegrees[] = {0,   15,  30,  45,  60,  75, 90,
                                            105, 120, 135, 150, 165, 180};
inline constexpr double kSeparatorMargins[] = {0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9};

// Returns 300 examples y·x, where y is a coin. Each has exactly the margin γ by w = e_0; otherwise
// they are uniform on a sphere.
Examples SphereExamples(double margin, uint64_t seed);
// Returns ±(γ, ±√(1 − γ²)), labeled by the first coordinate.
Examples FourPointExamples(double margin);

// Draws of separators h with h·w >= 0.
struct SeparatorDraws {
  int64_t separators = 0;
  // By the angle between w and x: the number of separators with h·x <= 0.
  int64_t wrong[std::size(kSeparatorDegrees)] = {};
  // By margin: the errors of the separators on the sphere and on the four points.
  std::vector<double> sphere[std::size(kSeparatorMargins)];
  std::vector<double> four[std::size(kSeparatorMargins)];
};

// Draws separators as the rows of random projections: their directions are uniform. Uses Seed(1)
// and up, one seed per build of 2,048 separators.
absl::StatusOr<SeparatorDraws> DrawSeparators(const Options& options);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_RANDOM_SEPARATORS_H_
