#include "lab/joint_chi_square.h"

#include <algorithm>
#include <cmath>

#include "core/random/stream_ids.h"
#include "core/status/check.h"
#include "lab/statistics.h"

namespace phimap::lab {
namespace {

constexpr int64_t kTables = 20'000;

// A row with the mean of each cell, and the variance of a printed number around it.
class Law {
 public:
  Law(const JointRow& row, const JointPaper& paper) : row_(row), paper_(paper) {
    PHIMAP_CHECK(!row.runs.empty() && row.runs.size() == row.printed.size());
    for (const absl::Span<const double> runs : row.runs) {
      PHIMAP_CHECK(!runs.empty() && runs.size() == row.runs[0].size());
      means_.push_back(Mean(runs));
      variances_.push_back(std::pow(Deviation(runs), 2) / static_cast<double>(paper.runs) +
                           paper.digit * paper.digit / 12);
    }
  }

  double ChiSquare(absl::Span<const double> printed) const {
    double sum = 0;
    for (size_t c = 0; c < means_.size(); ++c) {
      sum += std::pow(printed[c] - means_[c], 2) / variances_[c];
    }
    return sum;
  }

  // Returns the statistic of a row that is printed after as many of our runs as the paper had.
  double Draw(RandomCursor& random) const {
    std::vector<double> printed(means_.size());
    for (int64_t i = 0; i < paper_.runs; ++i) {
      const uint64_t run = random.UniformBelow(row_.runs[0].size());
      for (size_t c = 0; c < printed.size(); ++c) printed[c] += row_.runs[c][run];
    }
    for (double& mean : printed) {
      mean = std::round(mean / static_cast<double>(paper_.runs) / paper_.digit) * paper_.digit;
    }
    return ChiSquare(printed);
  }

 private:
  const JointRow& row_;
  const JointPaper& paper_;
  std::vector<double> means_;
  std::vector<double> variances_;
};

}  // namespace

JointTest TestJointly(const std::vector<JointRow>& rows, const JointPaper& paper, uint64_t seed) {
  PHIMAP_CHECK(!rows.empty() && paper.runs >= 1 && paper.digit > 0);
  JointTest test;
  std::vector<Law> laws;
  for (const JointRow& row : rows) {
    laws.emplace_back(row, paper);
    test.cells += static_cast<int64_t>(row.printed.size());
    test.chi_square += laws.back().ChiSquare(row.printed);
  }
  RandomCursor random(RandomStream(seed, StreamId::kLabOrder));
  std::vector<double> drawn(kTables);
  int64_t as_large = 0;
  for (double& chi_square : drawn) {
    for (const Law& law : laws) chi_square += law.Draw(random);
    as_large += chi_square >= test.chi_square ? 1 : 0;
  }
  test.median = Median(drawn);
  test.p = static_cast<double>(as_large + 1) / static_cast<double>(kTables + 1);
  return test;
}

}  // namespace phimap::lab
