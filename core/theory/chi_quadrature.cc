#include "core/theory/chi_quadrature.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace phimap {
namespace {

constexpr int kNodes = 64;

struct Rule {
  std::array<double, kNodes> x;
  std::array<double, kNodes> weight;
};

// Gauss–Legendre on [−1, 1]: the roots of P_64 by Newton's method.
Rule LegendreRule() {
  Rule rule;
  for (int i = 0; i < kNodes; ++i) {
    double x = std::cos(std::numbers::pi * (i + 0.75) / (kNodes + 0.5));
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

double Log1pMinus(double v) {
  if (std::abs(v) > 0.01) return std::log1p(v) - v;
  double power = v * v;
  double sum = 0;
  for (int j = 2; j < 11; ++j) {
    sum -= power / j;
    power *= -v;
  }
  return sum;
}

}  // namespace

Chi::Chi(double degrees) : k_(degrees), mode_(std::sqrt(degrees - 1)) {}

double Chi::LogRatio(double u) const {
  if (mode_ == 0) return -u * u / 2;
  const double v = u / mode_;
  if (v <= -1) return -std::numeric_limits<double>::infinity();
  return (k_ - 1) * Log1pMinus(v) - u * u / 2;
}

double Chi::WhereSlopeIs(double slope) const {
  const double root = std::sqrt(slope * slope + 4 * (k_ - 1));
  // Computes x − mode from root − 2·mode = slope²/(root + 2·mode). For large k, the difference root
  // − 2·mode itself would cancel.
  const double sum = root + 2 * mode_;
  return sum == 0 ? 0 : (slope * slope / sum - slope) / 2;
}

std::vector<ChiPoint> ChiPoints(const Chi& chi, double low, double high, int panels) {
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

double ChiMass(const Chi& chi) {
  double sum = 0;
  for (const ChiPoint& point : ChiPoints(chi, std::max(-chi.mode(), -kChiReach), kChiReach, 1)) {
    sum += point.share;
  }
  return sum;
}

double NormalBelow(double z) { return 0.5 * std::erfc(-z * std::sqrt(0.5)); }

}  // namespace phimap
