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

// Returns 300 examples y·x, where the label y is a fair coin. Each x has exactly the margin
// `margin` by w = e_0, and its other coordinates are uniform on a sphere.
Examples SphereExamples(double margin, uint64_t seed);
// Returns the four points ±(γ, ±√(1 − γ²)), where γ is `margin`. The label is 1 if the first
// coordinate is positive, else 0.
Examples FourPointExamples(double margin);

// Draws of separators h with h·w >= 0.
struct SeparatorDraws {
  int64_t separators = 0;
  // The number of separators with h·x <= 0, for each of kSeparatorDegrees as the angle between w
  // and x.
  int64_t wrong[std::size(kSeparatorDegrees)] = {};
  // The errors of the separators on the sphere and on the four points, for each of
  // kSeparatorMargins.
  std::vector<double> sphere[std::size(kSeparatorMargins)];
  std::vector<double> four[std::size(kSeparatorMargins)];
};

// Draws separators as the rows of random projections: their directions are uniform. Uses Seed(1)
// and up, one seed per build of 2,048 separators.
absl::StatusOr<SeparatorDraws> DrawSeparators(const Options& options);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_RANDOM_SEPARATORS_H_
