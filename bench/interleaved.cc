#include "bench/interleaved.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/status/check.h"

namespace phimap::bench {
namespace {

double SecondsOf(const std::function<void()>& run, int64_t repeats) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < repeats; ++i) run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Returns how many runs make a round last at least `round_seconds`.
int64_t Repeats(const Contender& contender, double round_seconds) {
  contender.run();
  int64_t repeats = 1;
  double seconds = SecondsOf(contender.run, repeats);
  while (seconds < round_seconds / 10) {
    repeats *= 4;
    seconds = SecondsOf(contender.run, repeats);
  }
  const double wanted = static_cast<double>(repeats) * round_seconds / seconds;
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(wanted)));
}

}  // namespace

double Median(std::vector<double> values) {
  PHIMAP_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void TimeInterleaved(const TimingOptions& options, std::vector<Contender>& contenders) {
  const size_t count = contenders.size();
  std::vector<int64_t> repeats;
  for (const Contender& contender : contenders) {
    repeats.push_back(Repeats(contender, options.round_seconds));
  }
  std::vector<std::vector<double>> times(count);
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < count; ++i) {
      const size_t turn = (i + round) % count;
      contenders[turn].run();
      const double seconds = SecondsOf(contenders[turn].run, repeats[turn]);
      times[turn].push_back(1e6 * seconds / static_cast<double>(repeats[turn]));
    }
  }
  for (size_t i = 0; i < count; ++i) contenders[i].median_us = Median(times[i]);
}

}  // namespace phimap::bench
