#include "core/theory/projection_law.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/status/check.h"
#include "core/theory/chi_quadrature.h"

namespace phimap {
namespace {

// Φ(−kSteep) is 1e-19.
constexpr double kSteep = 9;
// Number of points at which the range of an integrand is cut: a half, a quarter, … of its upper
// end.
constexpr int kHalves = 48;

// Returns c/√(1 − c²), the cotangent of the angle with cosine c.
double Cotangent(double c) { return c / std::sqrt((1 - c) * (1 + c)); }

// A chi variable, for averages of functions over it.
class ChiLaw {
 public:
  explicit ChiLaw(int64_t degrees) : chi_(static_cast<double>(degrees)), mass_(ChiMass(chi_)) {}

  double mode() const { return chi_.mode(); }
  // Bounds on the values, as distances from the mode. Values outside of them have a probability of
  // at most 1e-17.
  double lowest() const { return std::max(-kChiReach, -mode()); }
  double highest() const { return kChiReach; }

  // Returns E f(u), where u is the distance from the mode, for an f that is smooth between `cuts`.
  double Mean(std::vector<double> cuts, absl::FunctionRef<double(double)> f) const {
    for (double& cut : cuts) cut = std::clamp(cut, lowest(), highest());
    cuts.push_back(lowest());
    cuts.push_back(highest());
    std::sort(cuts.begin(), cuts.end());
    double sum = 0;
    for (size_t i = 1; i < cuts.size(); ++i) {
      if (cuts[i] == cuts[i - 1]) continue;
      for (const ChiPoint& point : ChiPoints(chi_, cuts[i - 1], cuts[i], 1)) {
        if (point.share > 0) sum += point.share * f(point.u);
      }
    }
    return sum / mass_;
  }

 private:
  Chi chi_;
  double mass_;
};

// Computes P[cos(Rw, Rx) < t] for n >= 2 and c >= 0. The letters are those of projection_law.h.
class CosineDistribution {
 public:
  CosineDistribution(int64_t n, double c) : x_(n), y_(n - 1), b_(Cotangent(c)) {}

  // REQUIRES: −1 < t < 1.
  double Below(double t) const {
    const double a = Cotangent(t);
    if (a == 0) return BelowGiven(0);
    // Cuts the range where the argument of Φ is ±kSteep at the lowest or the highest x. Between the
    // cuts, BelowGiven is smooth.
    std::vector<double> cuts;
    for (const double end : {lowest_x(), highest_x()}) {
      for (const double steep : {-kSteep, kSteep}) {
        cuts.push_back((b_ * end + steep) / a - y_.mode());
      }
    }
    return y_.Mean(std::move(cuts), [&](double u) { return BelowGiven(a * (y_.mode() + u)); });
  }

 private:
  double lowest_x() const { return x_.mode() + x_.lowest(); }
  double highest_x() const { return x_.mode() + x_.highest(); }

  // Returns E Φ(left − b·X).
  double BelowGiven(double left) const {
    if (left - b_ * lowest_x() < -kSteep) return 0;
    if (left - b_ * highest_x() > kSteep) return 1;
    if (b_ == 0) return NormalBelow(left);
    const double at_mode = left - b_ * x_.mode();
    return x_.Mean({(at_mode - kSteep) / b_, (at_mode + kSteep) / b_},
                   [&](double u) { return NormalBelow(at_mode - b_ * u); });
  }

  ChiLaw x_;
  ChiLaw y_;
  double b_;
};

// Returns P[cos(Rw, Rx) < t].
double CosineUnder(int64_t n, double c, double t) {
  if (t <= -1) return 0;
  if (t > 1) return 1;
  if (n == 1) return std::acos(c) / std::numbers::pi;
  if (t == 1) return 1;
  // −x has the opposite cosine.
  if (c < 0) return 1 - CosineDistribution(n, -c).Below(-t);
  return CosineDistribution(n, c).Below(t);
}

// The value of Z at which ⟨Rw, Rx⟩/n equals `bound`. It is a function of X: (n·bound − c·X²)/(s·X).
// The letters are those of projection_law.h.
class Threshold {
 public:
  Threshold(int64_t n, double c, double bound)
      : n_(static_cast<double>(n)),
        mode_(std::sqrt(n_ - 1)),
        c_(c),
        s_(std::sqrt((1 - c) * (1 + c))),
        bound_(bound) {}

  // Returns the threshold at X = mode + u. If c is near the bound, n·bound and c·(n − 1) nearly
  // cancel. Their difference is therefore computed from bound − c, and X² is written as n − 1 +
  // u·(2·mode + u).
  double At(double u) const {
    const double excess = n_ * (bound_ - c_) + c_ * (1 - u * (2 * mode_ + u));
    return excess / (s_ * (mode_ + u));
  }

  // Adds to `cuts` each u for which the threshold at X = mode + u is −kSteep or kSteep. Let v be
  // one of these two values. The threshold at X equals v if and only if c·X² + v·s·X − n·bound = 0.
  // Φ of the threshold is nearly constant where the threshold is below −kSteep or above kSteep.
  void AddCuts(std::vector<double>& cuts) const {
    for (const double v : {-kSteep, kSteep}) {
      const double p = v * s_;
      const double discriminant = p * p + 4 * c_ * n_ * bound_;
      if (!(discriminant >= 0)) continue;
      const double q = -(p + std::copysign(std::sqrt(discriminant), p)) / 2;
      for (const double root : {q / c_, -n_ * bound_ / q}) {
        if (std::isfinite(root)) cuts.push_back(root - mode_);
      }
    }
  }

 private:
  double n_;
  double mode_;
  double c_;
  double s_;
  double bound_;
};

}  // namespace

double CosineWithin(int64_t n, double cosine, double low, double high) {
  PHIMAP_CHECK(n >= 1 && -1 < cosine && cosine < 1 && low <= high);
  return std::clamp(CosineUnder(n, cosine, high) - CosineUnder(n, cosine, low), 0.0, 1.0);
}

double InnerProductWithin(int64_t n, double cosine, double low, double high) {
  PHIMAP_CHECK(n >= 1 && -1 < cosine && cosine < 1 && low <= high);
  const ChiLaw x(n);
  const Threshold from(n, cosine, low);
  const Threshold to(n, cosine, high);
  std::vector<double> cuts;
  from.AddCuts(cuts);
  to.AddCuts(cuts);
  // A threshold grows like 1/X towards 0, and X may come near 0 if n is small.
  double part = x.mode() + x.highest();
  for (int i = 0; i < kHalves; ++i) cuts.push_back((part /= 2) - x.mode());
  const double mean = x.Mean(
      std::move(cuts), [&](double u) { return NormalBelow(to.At(u)) - NormalBelow(from.At(u)); });
  return std::clamp(mean, 0.0, 1.0);
}

}  // namespace phimap
