#include "core/learn/margin.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/status/check.h"
#include "core/theory/binomial.h"

namespace phimap {
namespace {

// Returns the length of the weight vector w_k with the weight of the constant feature appended:
// ‖(w_k, b_k/B)‖. Returns ‖w_k‖ if the model has no intercepts b_k. B is the intercept scale.
double VectorNorm(const Separators& separators, size_t k) {
  if (separators.intercepts.empty()) return separators.norms[k];
  return std::hypot(separators.norms[k], separators.intercepts[k] / separators.intercept_scale);
}

// Returns the margin of a row of the given length. The cosine of the row with weight vector w_k is
// s_k/(‖w_k‖·length), where s_k is the row's score.
double Lead(const Separators& separators, absl::Span<const double> scores, double length,
            int label) {
  const size_t vectors = separators.norms.size();
  PHIMAP_CHECK(scores.size() == vectors && label >= 0);
  if (vectors == 1) {
    const double norm = VectorNorm(separators, 0);
    if (norm == 0 || length == 0) return 0;
    return (label == 1 ? scores[0] : -scores[0]) / (norm * length);
  }
  if (length == 0) return 0;
  double own = 0;
  double best_other = -std::numeric_limits<double>::infinity();
  for (size_t k = 0; k < vectors; ++k) {
    const bool is_own = k == static_cast<size_t>(label);
    const double norm = VectorNorm(separators, k);
    const double unknown = is_own ? -1.0 : 1.0;
    const double cosine = norm == 0 ? unknown : scores[k] / (norm * length);
    if (is_own) {
      own = cosine;
    } else {
      best_other = std::max(best_other, cosine);
    }
  }
  return own - best_other;
}

}  // namespace

double NormalisedMargin(const Separators& separators, absl::Span<const double> scores,
                        double squared_length, int label) {
  const double offset = separators.intercepts.empty() ? 0 : separators.intercept_scale;
  return Lead(separators, scores, std::sqrt(squared_length + offset * offset), label);
}

double UnnormalisedMargin(const Separators& separators, absl::Span<const double> scores,
                          int label) {
  return Lead(separators, scores, 1, label);
}

double CertainMargin(const Separators& separators, absl::Span<const double> scores,
                     double squared_length, double rounding, int label) {
  const double cosines = separators.norms.size() == 1 ? 1 : 2;
  const double offset = separators.intercepts.empty() ? 0 : separators.intercept_scale;
  const double share =
      offset == 0 ? 1 : std::sqrt(squared_length / (squared_length + offset * offset));
  const double certain =
      NormalisedMargin(separators, scores, squared_length, label) - cosines * share * rounding;
  // `certain` is not a number if the row has length 0 and an infinite `rounding`. Then nothing is
  // certain.
  return certain > -cosines ? certain : -cosines;
}

std::vector<double> Percentiles(absl::Span<const double> rising) {
  std::vector<double> quantiles;
  if (rising.empty()) return quantiles;
  const auto n = static_cast<int64_t>(rising.size());
  quantiles.reserve(101);
  for (int64_t q = 0; q <= 100; ++q) {
    quantiles.push_back(rising[std::max<int64_t>((q * n + 99) / 100, 1) - 1]);
  }
  return quantiles;
}

double MarginOfRows(absl::Span<const double> rising, double alpha) {
  PHIMAP_CHECK(!rising.empty() && alpha >= 0 && alpha < 1);
  // The factor 1 + 1e-12 makes 0.29 of 100 rows 29 rows. The rounded product alone would give 28.
  const double missing = alpha * static_cast<double>(rising.size()) * (1 + 1e-12);
  return rising[std::min(static_cast<size_t>(missing), rising.size() - 1)];
}

std::optional<double> MarginOfDistribution(absl::Span<const double> rising, double alpha,
                                           double doubt) {
  const int64_t rank = ConfidentRank(static_cast<int64_t>(rising.size()), alpha, doubt);
  if (rank == 0) return std::nullopt;
  return rising[rank - 1];
}

}  // namespace phimap
