#include "core/theory/cosine_law.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/random/portable_math.h"
#include "core/status/check.h"
#include "core/theory/monotone_search.h"

namespace phimap {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int kNodes = 64;
constexpr int kMaxPanels = 4;
// The integrand is log-concave and falls from its peak at least as fast as exp(−u²/2) in each chi
// variable: what lies further than this is under 1e-17 of it.
constexpr double kReach = 9;

struct Rule {
  std::array<double, kNodes> x;
  std::array<double, kNodes> weight;
};

// Gauss–Legendre on [−1, 1]: the roots of P_64 by Newton's method.
Rule LegendreRule() {
  Rule rule;
  for (int i = 0; i < kNodes; ++i) {
    double x = std::cos(kPi * (i + 0.75) / (kNodes + 0.5));
    double slope = 0;
    for (int step = 0; step < 8; ++step) {
      double before = 1;
      double value = x;
      for (int k = 2; k <= kNodes; ++k) {
        const double next = ((2 * k - 1) * x * value - (k - 1) * before) / k;
        before = value;
        value = next;
      }
      slope = kNodes * (x * value - before) / (x * x - 1);
      x -= value / slope;
    }
    rule.x[i] = x;
    rule.weight[i] = 2 / ((1 - x * x) * slope * slope);
  }
  return rule;
}

// A chi variable with k >= 1 degrees of freedom, as its mode and the distance from it: for large k
// the distance keeps its digits.
class Chi {
 public:
  explicit Chi(double k) : k_(k), mode_(std::sqrt(k - 1)) {}

  double mode() const { return mode_; }
  // ln of density(mode + u)/density(mode); −inf at 0 and below unless k is 1.
  double LogRatio(double u) const {
    if (mode_ == 0) return -u * u / 2;
    const double v = u / mode_;
    if (v <= -1) return -std::numeric_limits<double>::infinity();
    return (k_ - 1) * Log1pMinus(v) - u * u / 2;
  }
  // Where the slope of ln density is `slope`, as a distance from the mode: (k − 1)/x − x = slope.
  double WhereSlopeIs(double slope) const {
    const double root = std::sqrt(slope * slope + 4 * (k_ - 1));
    // x − mode, without cancellation for large k: root − 2·mode = slope²/(root + 2·mode).
    const double sum = root + 2 * mode_;
    return sum == 0 ? 0 : (slope * slope / sum - slope) / 2;
  }

 private:
  static double Log1pMinus(double v) {
    if (std::abs(v) > 0.01) return std::log1p(v) - v;
    double power = v * v;
    double sum = 0;
    for (int j = 2; j < 11; ++j) {
      sum -= power / j;
      power *= -v;
    }
    return sum;
  }

  double k_;
  double mode_;
};

// Points with their share of a chi variable's probability, over part of its range.
struct ChiPoint {
  double u;
  double share;
};

// The points of `panels` equal panels from `low` to `high`, distances from the mode; weights are
// relative to the density at the mode.
std::vector<ChiPoint> PointsOf(const Chi& chi, double low, double high, int panels) {
  static const Rule rule = LegendreRule();
  std::vector<ChiPoint> points;
  const double half = (high - low) / (2 * panels);
  for (int panel = 0; panel < panels; ++panel) {
    const double middle = low + (2 * panel + 1) * half;
    for (int i = 0; i < kNodes; ++i) {
      const double u = middle + half * rule.x[i];
      points.push_back({u, half * rule.weight[i] * std::exp(chi.LogRatio(u))});
    }
  }
  return points;
}

double Mass(const Chi& chi) {
  double sum = 0;
  for (const ChiPoint& point : PointsOf(chi, std::max(-chi.mode(), -kReach), kReach, 1)) {
    sum += point.share;
  }
  return sum;
}

// As PointsOf over what matters, the shares of the whole range summing to 1. `scale` is over how
// many units of the argument of Φ the range stretches.
std::vector<ChiPoint> Shares(const Chi& chi, double low, double high, double scale) {
  const int panels = std::clamp(static_cast<int>(std::ceil(scale / 40)), 1, kMaxPanels);
  std::vector<ChiPoint> points = PointsOf(chi, std::max(low, -chi.mode()), high, panels);
  const double mass = Mass(chi);
  for (ChiPoint& point : points) point.share /= mass;
  return points;
}

double NormalBelow(double z) { return 0.5 * std::erfc(-z * std::sqrt(0.5)); }

// φ(z)/Φ(z): how fast ln Φ rises.
double Mills(double z) {
  if (z < -30) return -z - 1 / z;  // Φ is about φ(z)/|z|; 2 % suffice, only a window hangs on it
  return std::exp(-z * z / 2) / (std::sqrt(2 * kPi) * NormalBelow(z));
}

// P[Z < a·Y − b·X] for chi variables X and Y.
class Orthant {
 public:
  Orthant(int64_t n, double a, double b)
      : a_(a), b_(b), x_(static_cast<double>(n)), y_(static_cast<double>(n > 1 ? n - 1 : 1)) {
    has_y_ = n > 1;
    FindPeak();
  }

  double Probability() const {
    // The conditional peak in x moves with y by less than a/(2√2) for each unit.
    const double reach_x = kReach * (1 + (has_y_ ? a_ / 2.8 : 0));
    const double ceiling = (a_ * (y_mode() + peak_y_ + kReach) + 10 + std::max(0.0, -peak_)) / b_;
    const double high = std::min(kReach, ceiling - x_.mode());
    const double low = std::max(peak_x_ - reach_x, -x_.mode());
    const std::vector<ChiPoint> xs =
        Shares(x_, low, std::max(high, peak_x_), (std::max(high, peak_x_) - low) * b_);
    if (!has_y_) return Sum(xs, 0);
    double sum = 0;
    for (const ChiPoint& y : Shares(y_, peak_y_ - kReach, peak_y_ + kReach, 2 * kReach * a_)) {
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

  // At the peak of the integrand the slopes of the three logarithms cancel: with m = Mills(A), x
  // lies where ln density has slope b·m, y where it has −a·m, and A = a·y − b·x. A rises with m and
  // Mills falls with A, so that one m fits.
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

// c/√(1 − c²): the cotangent of the angle.
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
