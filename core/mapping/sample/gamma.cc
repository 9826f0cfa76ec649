#include "core/mapping/sample/gamma.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

absl::Status NoScale(absl::string_view what, absl::string_view why) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition, reason::kGammaUndefined, "kernel",
      absl::StrCat("gamma=", what, " has no value: ", why, "; give gamma as a number"));
}

double SquaredDistance(ConstMatrixView<double> rows, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < rows.cols(); ++k) {
    const double difference = rows(i, k) - rows(j, k);
    sum += difference * difference;
  }
  return sum;
}

std::vector<double> PairDistances(ConstMatrixView<double> pool, uint64_t seed) {
  const int64_t n = pool.rows();
  std::vector<double> distances;
  distances.reserve(static_cast<size_t>(std::min(n * (n - 1) / 2, kMaxGammaPairs)));
  if (n * (n - 1) / 2 <= kMaxGammaPairs) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) distances.push_back(SquaredDistance(pool, i, j));
    }
    return distances;
  }
  const RandomStream random(seed, StreamId::kGammaPairs);
  for (int64_t pair = 0; pair < kMaxGammaPairs; ++pair) {
    // The second row is drawn from the others.
    const int64_t i = static_cast<int64_t>(random.UniformBelow(2 * pair, n));
    int64_t j = static_cast<int64_t>(random.UniformBelow(2 * pair + 1, n - 1));
    if (j >= i) ++j;
    distances.push_back(SquaredDistance(pool, i, j));
  }
  return distances;
}

}  // namespace

absl::StatusOr<double> ScaleGamma(const ColumnMoments& moments, bool standardized, bool shifted) {
  const double gamma = 1.0 / (static_cast<double>(moments.columns()) *
                              EntryVariance(moments, standardized, shifted));
  if (!std::isfinite(gamma) || gamma <= 0) {
    return NoScale("scale", "the variance of the stream's entries is 0 or not finite");
  }
  return gamma;
}

absl::StatusOr<double> MedianGamma(ConstMatrixView<double> pool, uint64_t seed) {
  std::vector<double> distances = PairDistances(pool, seed);
  if (distances.empty()) return NoScale("median", "there is only one row");
  const auto middle = distances.begin() + static_cast<int64_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  const double gamma = 1.0 / *middle;
  if (!std::isfinite(gamma) || gamma <= 0) {
    return NoScale("median", "the median distance of two rows is 0 or not finite");
  }
  return gamma;
}

}  // namespace phimap
