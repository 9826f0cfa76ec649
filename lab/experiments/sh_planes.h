// The data of Shi et al. 2012, section 5.2: points on parallel hyperplanes, and their margins
// before and after a projection.
#ifndef PHIMAP_LAB_EXPERIMENTS_SH_PLANES_H_
#define PHIMAP_LAB_EXPERIMENTS_SH_PLANES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"

namespace phimap::lab {

// Points on parallel hyperplanes: ⟨u, x⟩ is the offset of the class of x. The first rows are the
// separating vectors: u alone for two classes, one vector per class for more.
struct Planes {
  Matrix<double> rows;
  // One label per point.
  std::vector<int> labels;
  int64_t separators = 1;
  int64_t classes = 2;

  int64_t points() const { return static_cast<int64_t>(labels.size()); }
};

// Returns points on hyperplanes with these offsets, one per class, that are orthogonal to one
// random unit vector u of R^100. Each hyperplane has five points. The 100 coordinates of a point
// along its hyperplane have the deviation 0.07, so the point is about 0.7 away from offset·u. With
// more than two classes, every point has a last column of 1, and the vector of class y is
// (offset_y·u, 1). If the vectors were multiples of u alone, a class between two others would never
// have the greatest score.
Planes DrawPlanes(const std::vector<double>& offsets, uint64_t seed);

// The two margins of the data set. Each is the smallest over all points.
struct PlaneMargins {
  double normalised = 0;
  double unnormalised = 0;
};

// Returns the margins of `rows`: the rows of `planes`, or a projection of all of them, in which the
// separating vectors are projected like the points.
PlaneMargins MarginsOf(const Planes& planes, const Matrix<double>& rows);

// Returns the margins after each of `draws` maps of random_projection to n dimensions.
absl::StatusOr<std::vector<PlaneMargins>> DrawMargins(const Planes& planes, int64_t n,
                                                      int64_t draws, uint64_t seed);

// Returns the margin of Theorem 9 after each of `draws` maps of `multiclass`, which has n features
// for each class. It is the margin of one vector for all classes, v = Σ_y R_y w_y with unit vectors
// w_y: the least lead v·(R_y x − R_y' x), of the class y of a point x over another class y',
// divided by ‖v‖·√(‖R_y x‖² + ‖R_y' x‖²).
absl::StatusOr<std::vector<double>> DrawOneVectorMargins(const Planes& planes, int64_t n,
                                                         int64_t draws, uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_SH_PLANES_H_
