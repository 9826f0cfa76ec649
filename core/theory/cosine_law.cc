#include "core/theory/cosine_law.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/random/portable_math.h"
#include "core/status/check.h"
#include "core/theory/chi_quadrature.h"
#include "core/theory/monotone_search.h"

namespace phimap {
namespace {

constexpr int kMaxPanels = 4;

// Returns points of the range low … high of a chi variable, with their shares of the probability of
// all its values. `scale` is the length of the range in units of Φ's argument.
std::vector<ChiPoint> Shares(const Chi& chi, double low, double high, double scale) {
  const int panels = std::clamp(static_cast<int>(std::ceil(scale / 40)), 1, kMaxPanels);
  std::vector<ChiPoint> points = ChiPoints(chi, std::max(low, -chi.mode()), high, panels);
  const double mass = ChiMass(chi);
  for (ChiPoint& point : points) point.share /= mass;
  return points;
}

// Returns φ(z)/Φ(z), the slope of ln Φ.
double Mills(double z) {
  // For such z, Φ is about φ(z)/|z|. Only the range of integration depends on the result, so an
  // accuracy of 2 % suffices.
  if (z < -30) return -z - 1 / z;
  return std::exp(-z * z / 2) / (std::sqrt(2 * std::numbers::pi) * NormalBelow(z));
}

// Computes P[Z < a·Y − b·X] for a standard normal number Z and chi variables X and Y. The integrand
// is log-concave. With the distance u from its peak, in X or in Y, it falls at least as fast as
// exp(−u²/2). Less than 1e-17 of its mass is therefore further than kChiReach from the peak.
class Orthant {
 public:
  Orthant(int64_t n, double a, double b)
      : a_(a), b_(b), x_(static_cast<double>(n)), y_(static_cast<double>(n > 1 ? n - 1 : 1)) {
    has_y_ = n > 1;
    FindPeak();
  }

  double Probability() const {
    // For a fixed y, the integrand peaks at some x. When y moves by 1, that x moves by less than
    // a/(2√2).
    const double reach_x = kChiReach * (1 + (has_y_ ? a_ / 2.8 : 0));
    const double ceiling =
        (a_ * (y_mode() + peak_y_ + kChiReach) + 10 + std::max(0.0, -peak_)) / b_;
    const double high = std::min(kChiReach, ceiling - x_.mode());
    const double low = std::max(peak_x_ - reach_x, -x_.mode());
    const std::vector<ChiPoint> xs =
        Shares(x_, low, std::max(high, peak_x_), (std::max(high, peak_x_) - low) * b_);
    if (!has_y_) return Sum(xs, 0);
    double sum = 0;
    for (const ChiPoint& y :
         Shares(y_, peak_y_ - kChiReach, peak_y_ + kChiReach, 2 * kChiReach * a_)) {
      if (y.share > 0) sum += y.share * Sum(xs, a_ * (y_.mode() + y.u));
    }
    return sum;
  }

 private:
  double y_mode() const { return has_y_ ? y_.mode() : 0; }

  double Sum(const std::vector<ChiPoint>& xs, double left) const {
    const double base = left - b_ * x_.mode();
    double sum = 0;
    for (const ChiPoint& x : xs) sum += x.share * NormalBelow(base - b_ * x.u);
    return sum;
  }

  // Finds the peak (x, y) of the integrand. Let A = a·y − b·x and m = Mills(A). The peak is where
  // the derivatives of the logarithm vanish. So the ln density of X has slope b·m at x, and the ln
  // density of Y has slope −a·m at y. A rises with m, and Mills falls with A, so exactly one m
  // satisfies m = Mills(A).
  void FindPeak() {
    const auto argument = [this](double m) {
      peak_x_ = x_.WhereSlopeIs(b_ * m);
      peak_y_ = has_y_ ? y_.WhereSlopeIs(-a_ * m) : 0;
      const double y = has_y_ ? y_.mode() + peak_y_ : 0;
      return a_ * y - b_ * (x_.mode() + peak_x_);
    };
    double low = 0;
    double high = Mills(argument(0));
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (Mills(argument(middle)) > middle ? low : high) = middle;
    }
    peak_ = argument(low);
  }

  double a_;
  double b_;
  Chi x_;
  Chi y_;
  bool has_y_ = true;
  // Distances from the modes, and the argument of Φ there.
  double peak_x_ = 0;
  double peak_y_ = 0;
  double peak_ = 0;
};

// Returns c/√(1 − c²), the cotangent of the angle with cosine c.
double Cotangent(double c) { return c / std::sqrt((1 - c) * (1 + c)); }

}  // namespace

double CosineBelow(int64_t n, double c, double t) {
  PHIMAP_CHECK(n >= 1 && 0 < t && t < c && c <= 1 && t <= 0.9);
  if (c == 1) return 0;
  return std::min(1.0, Orthant(n, Cotangent(t), Cotangent(c)).Probability());
}

int64_t ProjectionDimensions(double c, double t, double p) {
  PHIMAP_CHECK(c >= 2e-5 && c <= 1 && 0 < t && t <= c / 2 && p >= 1e-40 && p < 1);
  if (c == 1) return 1;
  const double gap = std::atanh(c) - std::atanh(t);
  const double ratio = NormalQuantile(p) / gap;
  // z <= 13.4, so that the guess is under 2e12.
  const auto guess = static_cast<int64_t>(std::lround(2 + ratio * ratio));
  const std::optional<int64_t> n =
      FirstWhere(1, int64_t{1} << 44, guess, [=](int64_t n) { return CosineBelow(n, c, t) <= p; });
  PHIMAP_CHECK(n.has_value());
  return *n;
}

}  // namespace phimap
