// The data of Shi et al. 2012, section 5.2: points on parallel hyperplanes, and their margins
// before and after a projection.
#ifndef PHIMAP_LAB_EXPERIMENTS_SH_PLANES_H_
#define PHIMAP_LAB_EXPERIMENTS_SH_PLANES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"

namespace phimap::lab {

// Points on parallel hyperplanes ⟨u, x⟩ = offset of their class. The first rows are the separating
// vectors: u for two classes, one per class for more.
struct Planes {
  Matrix<double> rows;
  // One per point.
  std::vector<int> labels;
  int64_t separators = 1;
  int64_t classes = 2;

  int64_t points() const { return static_cast<int64_t>(labels.size()); }
};

// Returns hyperplanes with these offsets, one per class, orthogonal to one random direction u of
// R^100. Each has five points, whose 100 coordinates along the hyperplane have the deviation 0.07,
// so the points are about 0.7 away from offset·u. With more than two classes, every point has a
// last column of 1, and class y has the vector (offset_y·u, 1): a product with u alone would never
// be greatest for a class between two others.
Planes DrawPlanes(const std::vector<double>& offsets, uint64_t seed);

// Both margins of the data set: the least over its points.
struct PlaneMargins {
  double normalised = 0;
  double unnormalised = 0;
};

// Returns the margins of `rows`, which are the rows of `planes`, or their projection by R with R·u
// in place of u.
PlaneMargins MarginsOf(const Planes& planes, const Matrix<double>& rows);

// Returns the margins after each of `draws` maps of random_projection to n dimensions.
absl::StatusOr<std::vector<PlaneMargins>> DrawMargins(const Planes& planes, int64_t n,
                                                      int64_t draws, uint64_t seed);

// Returns Theorem 9's margin after each of `draws` maps of multiclass to blocks of n. It is the
// margin of one vector for all classes, v = Σ R_y w_y for unit w_y: the least lead divided by
// ‖v‖·√(‖R_y x‖² + ‖R_y' x‖²).
absl::StatusOr<std::vector<double>> DrawOneVectorMargins(const Planes& planes, int64_t n,
                                                         int64_t draws, uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_SH_PLANES_H_
