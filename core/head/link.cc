#include "core/head/link.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random/portable_math.h"
#include "core/status/check.h"

namespace phimap {
namespace {

// The least slope, for scores that were divided by their spread.
constexpr double kLeastSlope = 1e-6;
// Keeps the slope finite where scores are close to the smallest numbers.
constexpr double kLargestSlope = 1e300;
constexpr int kMaxSteps = 200;
// Steps end where the gradient, of scores that were divided by their spread, is rounding: a mean of
// numbers of size 1 errs by some 1e-16.
constexpr double kZeroGradient = 1e-13;

// Returns 1/(1 + exp(−z)), with all its digits where it is small: no exp overflows, and nothing is
// subtracted from 1.
double Logistic(double z) {
  if (z >= 0) return 1 / (1 + Exp(-z));
  const double e = Exp(z);
  return e / (1 + e);
}

// Returns −t·ln p − (1 − t)·ln(1 − p) for p = Logistic(z): (1 − t)·z + ln(1 + e^−z), which is the
// same as −t·z + ln(1 + e^z). The form is chosen whose exp is at most 1.
double LogLoss(double z, double t) {
  return z >= 0 ? (1 - t) * z + Log1p(Exp(-z)) : -t * z + Log1p(Exp(z));
}

// The loss of Platt's link on scores u in place of s, which are centred and divided by their
// spread, with p = Logistic(slope·u + offset).
class PlattLoss {
 public:
  PlattLoss(std::vector<double> u, absl::Span<const int32_t> labels) : u_(std::move(u)) {
    const auto positive = static_cast<double>(std::count(labels.begin(), labels.end(), 1));
    const double negative = static_cast<double>(labels.size()) - positive;
    targets_.reserve(labels.size());
    for (const int32_t label : labels) {
      targets_.push_back(label == 1 ? (positive + 1) / (positive + 2) : 1 / (negative + 2));
    }
  }

  struct Point {
    double slope = 0;
    double offset = 0;
  };
  // The first and second derivatives of the mean loss.
  struct Derivatives {
    double slope = 0, offset = 0;
    double slope_slope = 0, slope_offset = 0, offset_offset = 0;
  };

  double mean_target() const {
    double sum = 0;
    for (const double t : targets_) sum += t;
    return sum / rows();
  }

  double Loss(const Point& at) const {
    double sum = 0;
    for (size_t i = 0; i < u_.size(); ++i) {
      sum += LogLoss(at.slope * u_[i] + at.offset, targets_[i]);
    }
    return sum / rows();
  }

  Derivatives DerivativesAt(const Point& at) const {
    Derivatives d;
    for (size_t i = 0; i < u_.size(); ++i) {
      const double p = Logistic(at.slope * u_[i] + at.offset);
      const double difference = p - targets_[i];
      const double weight = p * (1 - p);
      d.slope += difference * u_[i];
      d.offset += difference;
      d.slope_slope += weight * u_[i] * u_[i];
      d.slope_offset += weight * u_[i];
      d.offset_offset += weight;
    }
    for (double* sum : {&d.slope, &d.offset, &d.slope_slope, &d.slope_offset, &d.offset_offset}) {
      *sum /= rows();
    }
    return d;
  }

  // Newton's method with halved steps, from `point`. With `fixed_slope` only the offset is changed.
  // Each step lowers the loss, and the loss is convex with a minimum, because all targets are
  // within (0, 1).
  Point Minimise(Point point, bool fixed_slope) const {
    double loss = Loss(point);
    // Where the loss is flat within rounding it cannot judge a step. Newton's own steps are taken
    // there: they double the number of right digits, so that three reach what rounding allows.
    int flat_steps = 0;
    for (int step = 0; step < kMaxSteps && flat_steps < 3; ++step) {
      const Derivatives d = DerivativesAt(point);
      const double size = std::max(fixed_slope ? 0.0 : std::abs(d.slope), std::abs(d.offset));
      if (size <= kZeroGradient) break;
      Point direction;
      // Keeps the system solvable where all p have rounded to 0 or 1. It changes the path and not
      // its end, at which the gradient is 0.
      constexpr double kRidge = 1e-12;
      const double b = d.offset_offset + kRidge;
      if (fixed_slope) {
        direction.offset = -d.offset / b;
      } else {
        const double a = d.slope_slope + kRidge;
        const double determinant = a * b - d.slope_offset * d.slope_offset;
        direction.slope = -(b * d.slope - d.slope_offset * d.offset) / determinant;
        direction.offset = -(a * d.offset - d.slope_offset * d.slope) / determinant;
      }
      const double descent = d.slope * direction.slope + d.offset * direction.offset;
      if (!(descent < 0)) break;
      const bool flat = -descent <= 1e-15 * (1 + loss);
      if (flat) ++flat_steps;
      bool moved = false;
      for (double length = 1; length > 1e-10 && !moved; length /= 2) {
        const Point next = {point.slope + length * direction.slope,
                            point.offset + length * direction.offset};
        const double next_loss = Loss(next);
        moved = flat || next_loss <= loss + 1e-4 * length * descent;
        if (!moved) continue;
        point = next;
        loss = next_loss;
      }
      if (!moved) break;
    }
    return point;
  }

 private:
  double rows() const { return static_cast<double>(u_.size()); }

  std::vector<double> u_;
  std::vector<double> targets_;
};

Link FitPlatt(ConstMatrixView<double> scores, absl::Span<const int32_t> labels) {
  const int64_t n = scores.rows();
  // Scores may be as large as a number can be: they are divided by the largest before they are
  // added up or squared.
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(scores(i, 0)));
  if (largest == 0) largest = 1;
  double mean = 0;
  for (int64_t i = 0; i < n; ++i) mean += scores(i, 0) / largest / static_cast<double>(n);
  double variance = 0;
  std::vector<double> u(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    u[static_cast<size_t>(i)] = scores(i, 0) / largest - mean;
    variance += u[static_cast<size_t>(i)] * u[static_cast<size_t>(i)] / static_cast<double>(n);
  }
  // A spread within the rounding of the mean is none.
  const double spread = std::sqrt(variance) > 1e-14 ? std::sqrt(variance) : 0;
  for (double& value : u) value = spread == 0 ? 0 : value / spread;
  const PlattLoss loss(std::move(u), labels);

  const double share = loss.mean_target();
  PlattLoss::Point point{.slope = 1, .offset = Log(share / (1 - share))};
  if (spread > 0) point = loss.Minimise(point, /*fixed_slope=*/false);
  if (!(point.slope >= kLeastSlope)) {
    // The loss is convex, so under the constraint it is least where the slope is.
    point = loss.Minimise({.slope = kLeastSlope, .offset = Log(share / (1 - share))},
                          /*fixed_slope=*/true);
  }
  // slope·u + offset as a function of the score s = largest·(mean + spread·u).
  const double per_unit = point.slope / (spread == 0 ? 1 : spread);
  return {.kind = Link::Kind::kPlatt,
          .slope = std::min(per_unit / largest, kLargestSlope),
          .offset = point.offset - per_unit * mean};
}

// The derivatives of the mean loss of a temperature, on scores that were divided by their spread.
struct SlopeDerivatives {
  double first = 0;
  double second = 0;
};

SlopeDerivatives TemperatureDerivatives(const Matrix<double>& u, absl::Span<const int32_t> labels,
                                        double slope) {
  const auto n = static_cast<double>(u.rows());
  const auto classes = static_cast<double>(u.cols());
  const double own_target = (n + 1) / (n + 2);
  const double other_target = (1 - own_target) / (classes - 1);
  SlopeDerivatives d;
  for (int64_t i = 0; i < u.rows(); ++i) {
    // All u of a row are at most 0 and one is 0, so that no exp overflows and the sum is at least
    // 1.
    double sum = 0;
    double first = 0;
    double second = 0;
    double target = 0;
    for (int64_t j = 0; j < u.cols(); ++j) {
      const double e = Exp(slope * u(i, j));
      sum += e;
      first += e * u(i, j);
      second += e * u(i, j) * u(i, j);
      target += (j == labels[static_cast<size_t>(i)] ? own_target : other_target) * u(i, j);
    }
    const double mean = first / sum;
    d.first += (mean - target) / n;
    d.second += (second / sum - mean * mean) / n;
  }
  return d;
}

Link FitTemperature(ConstMatrixView<double> scores, absl::Span<const int32_t> labels) {
  Matrix<double> u(scores.rows(), scores.cols());
  double spread = 0;
  for (int64_t i = 0; i < u.rows(); ++i) {
    const double* row = scores.row(i);
    const double top = *std::max_element(row, row + u.cols());
    const double bottom = *std::min_element(row, row + u.cols());
    // Half of both, because the difference of two finite numbers may not be finite.
    spread = std::max(spread, top / 2 - bottom / 2);
    for (int64_t j = 0; j < u.cols(); ++j) u(i, j) = row[j] / 2 - top / 2;
  }
  if (spread == 0) return {.kind = Link::Kind::kTemperature};
  for (int64_t k = 0; k < u.size(); ++k) u.data()[k] /= spread;

  // The first derivative rises with the slope, and is over 0 in the end, because every class has a
  // target over 0. Newton's steps stay between a slope that is too low and one that is too high.
  double low = kLeastSlope;
  double high = 1;
  const auto first = [&](double slope) { return TemperatureDerivatives(u, labels, slope).first; };
  // Beyond 2^60 the scores that matter differ by the rounding of others.
  while (high < 0x1p60 && first(high) < 0) {
    low = high;
    high *= 2;
  }
  double slope = low == kLeastSlope && first(low) >= 0 ? low : (low + high) / 2;
  for (int step = 0; step < kMaxSteps && slope > kLeastSlope; ++step) {
    const SlopeDerivatives d = TemperatureDerivatives(u, labels, slope);
    if (std::abs(d.first) <= kZeroGradient) break;
    (d.first < 0 ? low : high) = slope;
    double next = slope - d.first / d.second;
    if (!(next > low && next < high)) next = (low + high) / 2;
    if (next == slope) break;
    slope = next;
  }
  // u is half of the score, over `spread`.
  return {.kind = Link::Kind::kTemperature, .slope = std::min(slope / 2 / spread, kLargestSlope)};
}

}  // namespace

void Probabilities(const Link& link, absl::Span<const double> scores,
                   absl::Span<double> probabilities) {
  PHIMAP_CHECK(link.kind != Link::Kind::kNone);
  if (link.kind == Link::Kind::kPlatt) {
    PHIMAP_CHECK(scores.size() == 1 && probabilities.size() == 2);
    const double z = link.slope * scores[0] + link.offset;
    probabilities[0] = Logistic(-z);
    probabilities[1] = Logistic(z);
    return;
  }
  PHIMAP_CHECK(scores.size() == probabilities.size() && !scores.empty());
  const double top = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (size_t j = 0; j < scores.size(); ++j) {
    probabilities[j] = Exp(link.slope * (scores[j] - top));
    sum += probabilities[j];
  }
  for (double& p : probabilities) p /= sum;
}

Link FitLink(ConstMatrixView<double> scores, absl::Span<const int32_t> labels,
             int32_t class_count) {
  PHIMAP_CHECK(scores.rows() >= 1 && class_count >= 2);
  PHIMAP_CHECK(static_cast<int64_t>(labels.size()) == scores.rows());
  PHIMAP_CHECK(scores.cols() == (class_count == 2 ? 1 : class_count));
  return class_count == 2 ? FitPlatt(scores, labels) : FitTemperature(scores, labels);
}

}  // namespace phimap
