// Quadrature over chi variables. The exact distributions of Gaussian projections are integrals over
// chi variables.
//
// A chi variable with k degrees of freedom is the length of a vector of k independent N(0, 1)
// numbers. Its density is largest at the mode √(k − 1). A value is represented by its distance u
// from the mode, because u keeps its digits when k is large. Densities are divided by the density
// at the mode, so that no gamma function is needed. Sums must therefore be divided by ChiMass.
#ifndef PHIMAP_CORE_THEORY_CHI_QUADRATURE_H_
#define PHIMAP_CORE_THEORY_CHI_QUADRATURE_H_

#include <vector>

namespace phimap {

// How far the quadrature reaches from the mode. The density is log-concave, and falls from the mode
// at least as fast as exp(−u²/2). Its mass beyond this distance is less than 1e-17.
inline constexpr double kChiReach = 9;

// REQUIRES: degrees >= 1, a whole number.
class Chi {
 public:
  explicit Chi(double degrees);

  double mode() const { return mode_; }
  // Returns ln of density(mode + u)/density(mode); −inf at 0 and below unless k is 1.
  double LogRatio(double u) const;
  // Returns the distance from the mode at which the derivative of ln density is `slope`. At a value
  // x, that derivative is (k − 1)/x − x.
  double WhereSlopeIs(double slope) const;

 private:
  double k_;
  double mode_;
};

// A value, given as its distance u from the mode, and its share of the probability, relative to the
// density at the mode.
struct ChiPoint {
  double u;
  double share;
};

// Returns the points of 64-point Gauss–Legendre rules on `panels` equal panels from `low` to
// `high`. Accuracy: 1e-15 for the density alone, with one panel over the whole reach. Pure.
std::vector<ChiPoint> ChiPoints(const Chi& chi, double low, double high, int panels);
// Returns the sum of the shares over the whole reach.
double ChiMass(const Chi& chi);

// Returns Φ(z), the probability of a normal number under z.
double NormalBelow(double z);

}  // namespace phimap

#endif  // PHIMAP_CORE_THEORY_CHI_QUADRATURE_H_
