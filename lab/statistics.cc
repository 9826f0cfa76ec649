#include "lab/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/random/stream_ids.h"
#include "core/status/check.h"

namespace phimap::lab {
namespace {

constexpr int64_t kMeans = 100'000;

}  // namespace

double Mean(absl::Span<const double> numbers) {
  PHIMAP_CHECK(!numbers.empty());
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

double Deviation(absl::Span<const double> numbers) {
  if (numbers.size() < 2) return 0;
  const double mean = Mean(numbers);
  double squares = 0;
  for (const double x : numbers) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / static_cast<double>(numbers.size() - 1));
}

double StandardError(absl::Span<const double> numbers) {
  return Deviation(numbers) / std::sqrt(static_cast<double>(numbers.size()));
}

double Median(absl::Span<const double> numbers) {
  PHIMAP_CHECK(!numbers.empty());
  std::vector<double> rising(numbers.begin(), numbers.end());
  std::sort(rising.begin(), rising.end());
  const size_t half = rising.size() / 2;
  return rising.size() % 2 == 1 ? rising[half] : (rising[half - 1] + rising[half]) / 2;
}

Interval CentralMeans(absl::Span<const double> runs, int64_t count, uint64_t seed) {
  PHIMAP_CHECK(!runs.empty() && count >= 1);
  RandomCursor random(RandomStream(seed, StreamId::kLabOrder));
  std::vector<double> means(kMeans);
  for (double& mean : means) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += runs[random.UniformBelow(runs.size())];
    mean = sum / static_cast<double>(count);
  }
  std::sort(means.begin(), means.end());
  return {.low = means[kMeans / 1000], .high = means[kMeans - 1 - kMeans / 1000]};
}

Interval ShareInterval(int64_t successes, int64_t draws) {
  PHIMAP_CHECK(0 <= successes && successes <= draws && draws >= 1);
  constexpr double kZ = 1.959964;
  const auto n = static_cast<double>(draws);
  const double p = static_cast<double>(successes) / n;
  const double shrink = 1 / (1 + kZ * kZ / n);
  const double centre = shrink * (p + kZ * kZ / (2 * n));
  const double half = shrink * kZ * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n));
  return {.low = std::max(0.0, centre - half), .high = std::min(1.0, centre + half)};
}

double LogLogSlope(absl::Span<const double> x, absl::Span<const double> y) {
  PHIMAP_CHECK(x.size() == y.size() && x.size() >= 2);
  std::vector<double> u;
  std::vector<double> v;
  for (size_t i = 0; i < x.size(); ++i) {
    PHIMAP_CHECK(x[i] > 0 && y[i] > 0);
    u.push_back(std::log(x[i]));
    v.push_back(std::log(y[i]));
  }
  const double mean_u = Mean(u);
  const double mean_v = Mean(v);
  double product = 0;
  double square = 0;
  for (size_t i = 0; i < u.size(); ++i) {
    product += (u[i] - mean_u) * (v[i] - mean_v);
    square += (u[i] - mean_u) * (u[i] - mean_u);
  }
  return product / square;
}

}  // namespace phimap::lab
