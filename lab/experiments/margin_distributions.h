// Distributions of labeled unit vectors whose margin is known, for theorems on margins.
#ifndef PHIMAP_LAB_EXPERIMENTS_MARGIN_DISTRIBUTIONS_H_
#define PHIMAP_LAB_EXPERIMENTS_MARGIN_DISTRIBUTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/linalg/matrix.h"
#include "lab/statistics.h"

namespace phimap::lab {

// An example is y·x, its label y a fair coin; every x has the cosine `margin` or more with w. The
// kernel is linear(): a row is its own φ.
struct MarginDistribution {
  std::string name;
  // Margin of the theorem.
  double margin = 0;
  double error = 0;
  double delta = 0;
  // The x that errors are measured on, and the mass of each: all that there are, or a sample.
  Matrix<double> points;
  std::vector<double> masses;
  // Row 0 is w. Row 1, where there is one, is a unit w' with half of the margin.
  Matrix<double> separators;
  // The last `rare` points have the same small mass each; 0: there are no such points, and the
  // distribution is a sphere.
  int64_t rare = 0;

  // Independent examples.
  Matrix<double> Draw(int64_t count, uint64_t seed) const;
  // Between which two numbers the probability lies that w and its part in the span of so many
  // examples differ by more than margin/2 on a mass of more than `error`: while the common
  // direction is drawn, that is when too many of the rare ones are not; how far apart the two are
  // is the probability that it is not drawn. nullopt for the sphere.
  std::optional<Interval> FailureLaw(int64_t draws) const;
};

// A common direction and one at 65.5° of a mass just over ε = 0.3. While one of them is missing
// from the span, the other has a cosine under γ/2 with all that is in it.
MarginDistribution OneRareDirection();

// A common direction c, and `count` rare ones of the mass e·ε together, the mass that needs most
// draws; w is such that the span of c and any of the others leaves half of the margin, at least, to
// be explained by each that was not drawn. The margin is 2/(√count + 1); REQUIRES: `margin` is
// less.
MarginDistribution RareDirections(int64_t count, double margin, double error);

// x = γ·w + √(1 − γ²)·v in 600 columns, v uniform on the unit sphere of 598 of them; in one
// example of a hundred v is u, the last one. So all examples have the margin γ = 0.5 by w, all but
// those few have γ/2 by w' = w/2 + (√3/2)·u, and those more.
MarginDistribution Sphere(uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_MARGIN_DISTRIBUTIONS_H_
