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

// A distribution of examples y·x, where the label y is a fair coin and every x has a cosine of at
// least `margin` with w. The kernel is linear(), so a row is its own φ.
struct MarginDistribution {
  std::string name;
  // The margin γ of the theorem.
  double margin = 0;
  double error = 0;
  double delta = 0;
  // The x on which errors are measured, with the mass of each: all x of the distribution, or a
  // sample.
  Matrix<double> points;
  std::vector<double> masses;
  // Row 0 is w. Row 1, if there is one, is a unit vector w' with half of the margin.
  Matrix<double> separators;
  // The last `rare` points have the same small mass each. If 0, there are no such points and the
  // distribution is a sphere.
  int64_t rare = 0;

  // Returns independent examples.
  Matrix<double> Draw(int64_t count, uint64_t seed) const;
  // Returns bounds on the probability that projecting w onto the span of `draws` examples changes
  // w·x by more than margin/2 on a mass of x of more than `error`. If the common direction is
  // drawn, this happens when too many of the rare directions are not drawn. The bounds allow for
  // the probability that the common direction is not drawn. nullopt for the sphere.
  std::optional<Interval> FailureLaw(int64_t draws) const;
};

// Returns a distribution of two directions at an angle of 65.5°: a common one, and a rare one with
// a mass just over ε = 0.3. If one of the two is missing from the span of the examples, its cosine
// with every vector in the span is under γ/2.
MarginDistribution OneRareDirection();

// Returns a distribution of a common direction c and `count` rare directions. The total mass of the
// rare directions is e·ε (e is Euler's number), which is the mass that needs the most draws. The
// separator w is such that projecting w onto the span of c and of any rare directions loses at
// least half of the margin of each direction that was not drawn. The margin is 2/(√count + 1).
// REQUIRES: `margin` is less than this margin.
MarginDistribution RareDirections(int64_t count, double margin, double error);

// Returns a distribution of x = γ·w + √(1 − γ²)·v in 600 columns, where v is uniform on the unit
// sphere of 598 of the columns. In one example of a hundred, v is instead u, the unit vector of the
// last column. So all examples have the margin γ = 0.5 by w. By w' = w/2 + (√3/2)·u, the examples
// with v = u have a larger margin, and all others have the margin γ/2.
MarginDistribution Sphere(uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_MARGIN_DISTRIBUTIONS_H_
