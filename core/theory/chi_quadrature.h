// Quadrature over chi variables: the exact laws of Gaussian projections are integrals over them.
//
// A chi variable with k degrees of freedom is the length of k independent N(0, 1) numbers. Its
// values are given as distances u from the mode √(k − 1), which keep their digits for large k. Its
// densities are relative to the density at the mode, so that no gamma function is needed; sums are
// divided by ChiMass.
#ifndef PHIMAP_CORE_THEORY_CHI_QUADRATURE_H_
#define PHIMAP_CORE_THEORY_CHI_QUADRATURE_H_

#include <vector>

namespace phimap {

// The density is log-concave and falls from the mode at least as fast as exp(−u²/2): its mass
// beyond this distance is less than 1e-17.
inline constexpr double kChiReach = 9;

// REQUIRES: degrees >= 1, a whole number.
class Chi {
 public:
  explicit Chi(double degrees);

  double mode() const { return mode_; }
  // ln of density(mode + u)/density(mode); −inf at 0 and below unless k is 1.
  double LogRatio(double u) const;
  // Distance from the mode at which ln density has slope `slope`: (k − 1)/x − x = slope.
  double WhereSlopeIs(double slope) const;

 private:
  double k_;
  double mode_;
};

// A value and its share of the probability, relative to the density at the mode.
struct ChiPoint {
  double u;
  double share;
};

// The points of 64-point Gauss–Legendre rules on `panels` equal panels from `low` to `high`.
// Accuracy: 1e-15 for the density alone, with one panel over the whole reach. Pure.
std::vector<ChiPoint> ChiPoints(const Chi& chi, double low, double high, int panels);
// The sum of the shares over the whole reach.
double ChiMass(const Chi& chi);

// Φ(z), the probability of a normal number under z.
double NormalBelow(double z);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_CHI_QUADRATURE_H_
