#include "core/drift/sequential_test.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random/stream_ids.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

// Returns a reference of `scores` scores, whose histograms have `rows` rows in `bins` bins.
DriftReference MakeReference(int64_t scores, int64_t bins, int64_t rows, uint64_t seed) {
  DriftReference reference{.rows = rows};
  RandomCursor random(RandomStream(seed, StreamId::kLabRows));
  for (int64_t s = 0; s < scores; ++s) {
    reference.scores.functions.push_back({ScoreKind::kColumn, static_cast<int32_t>(s)});
    ScoreHistogram histogram;
    for (int64_t b = 1; b < bins; ++b) {
      histogram.edges.push_back(static_cast<double>(b) / static_cast<double>(bins));
    }
    histogram.counts.assign(static_cast<size_t>(bins), 0);
    for (int64_t i = 0; i < rows; ++i) {
      ++histogram.counts[random.UniformBelow(static_cast<uint64_t>(bins))];
    }
    reference.histograms.push_back(histogram);
  }
  return reference;
}

// The test of one score, written out from its definition: the bag is a list of bins, and every
// number is counted anew.
class NaiveTest {
 public:
  NaiveTest(const ScoreHistogram& histogram, double log_threshold)
      : histogram_(histogram), log_threshold_(log_threshold) {
    Restart();
  }

  void Restart() {
    bag_.clear();
    for (size_t b = 0; b < histogram_.counts.size(); ++b) {
      for (int k = 0; k < histogram_.counts[b]; ++k) bag_.push_back(static_cast<int64_t>(b));
    }
    location_.assign(8, 0.0);
    spread_.assign(8, 0.0);
    earlier_ = peak_;
    peak_ = {0, 0};
  }

  void Add(double score, double theta) {
    int64_t bin = 0;
    while (bin < static_cast<int64_t>(histogram_.edges.size()) && histogram_.edges[bin] <= score) {
      ++bin;
    }
    const auto above = std::count_if(bag_.begin(), bag_.end(), [&](int64_t b) { return b > bin; });
    const auto equal = std::count(bag_.begin(), bag_.end(), bin);
    const double p = (static_cast<double>(above) + theta * static_cast<double>(1 + equal)) /
                     static_cast<double>(bag_.size() + 1);
    bag_.push_back(bin);
    peak_.first = std::max(peak_.first, Bet(location_, p));
    peak_.second = std::max(peak_.second, Bet(spread_, 2 * std::abs(p - 0.5)));
  }

  double location() const { return Evidence(std::max(peak_.first, earlier_.first)); }
  double spread() const { return Evidence(std::max(peak_.second, earlier_.second)); }

 private:
  static double Bet(std::vector<double>& r, double number) {
    const double bets[] = {1, -1, 0.5, -0.5, 0.25, -0.25, 0.1, -0.1};
    double sum = 0;
    for (int e = 0; e < 8; ++e) {
      r[e] = (1 + r[e]) * (1 + bets[e] * (number - 0.5));
      sum += r[e];
    }
    return sum / 8;
  }
  double Evidence(double r) const { return r > 1 ? std::log(r) / log_threshold_ : 0; }

  const ScoreHistogram& histogram_;
  const double log_threshold_;
  std::vector<int64_t> bag_;
  std::vector<double> location_, spread_;
  std::pair<double, double> peak_ = {0, 0};
  std::pair<double, double> earlier_ = {0, 0};
};

TEST(SequentialTestTest, EvidenceIsThatOfItsDefinition) {
  const DriftReference reference = MakeReference(3, 17, 211, 5);
  const SequentialTestSpec spec{
      .false_alarms = 0.1, .rows = 1000, .restart_rows = 150, .seed = 0xabcdef};
  SequentialTest test(reference, spec);
  // Two forms of three scores.
  EXPECT_DOUBLE_EQ(test.threshold(), 6 * 1000 / 0.1);
  std::vector<NaiveTest> naive;
  for (const ScoreHistogram& histogram : reference.histograms) {
    naive.emplace_back(histogram, std::log(test.threshold()));
  }
  const RandomStream ties(spec.seed, StreamId::kDriftTies);
  RandomCursor random(RandomStream(9, StreamId::kLabRows));
  for (uint64_t row = 0; row < 700; ++row) {
    // The first score does not drift, the second moves, and the third is spread less.
    const double u = random.UniformOpen01();
    const double scores[] = {random.UniformOpen01(), 0.4 + 0.6 * u,
                             0.3 + 0.4 * random.UniformOpen01()};
    if (row > 0 && row % 150 == 0) {
      for (NaiveTest& each : naive) each.Restart();
    }
    for (size_t s = 0; s < 3; ++s) naive[s].Add(scores[s], ties.UniformOpen01(row * 3 + s));
    test.Add(scores);
    const std::vector<ScoreEvidence> evidence = test.Evidence();
    double largest = 0;
    for (size_t s = 0; s < 3; ++s) {
      ASSERT_NEAR(evidence[s].location, naive[s].location(), 1e-9) << row << ", score " << s;
      ASSERT_NEAR(evidence[s].spread, naive[s].spread(), 1e-9) << row << ", score " << s;
      largest = std::max({largest, naive[s].location(), naive[s].spread()});
    }
    ASSERT_NEAR(test.largest_evidence(), largest, 1e-9);
  }
  EXPECT_EQ(test.rows(), 700);
  const std::vector<ScoreEvidence> evidence = test.Evidence();
  EXPECT_LT(evidence[0].largest(), 0.8);
  EXPECT_GT(evidence[1].location, 1);
  EXPECT_GT(evidence[2].spread, 1);
}

// Rows that drift for a whole restart multiply R by up to 1.5 each time. It must stay a number.
TEST(SequentialTestTest, EvidenceStaysFinite) {
  const DriftReference reference = MakeReference(1, 256, 2000, 1);
  SequentialTest test(reference, {.restart_rows = 1'000'000});
  const double score = 2;
  for (int i = 0; i < 20'000; ++i) test.Add(&score);
  EXPECT_TRUE(std::isfinite(test.largest_evidence()));
  EXPECT_GT(test.largest_evidence(), 10);
}

// Evidence survives one restart, and is gone after two without drift.
TEST(SequentialTestTest, EvidenceIsOfTheLastTwoRestarts) {
  const DriftReference reference = MakeReference(1, 64, 1000, 2);
  SequentialTest test(reference, {.rows = 1000, .restart_rows = 500});
  RandomCursor random(RandomStream(3, StreamId::kLabRows));
  const auto add = [&](int64_t rows, double low) {
    for (int64_t i = 0; i < rows; ++i) {
      const double score = low + (1 - low) * random.UniformOpen01();
      test.Add(&score);
    }
  };
  add(500, 0.5);
  const double crossed = test.largest_evidence();
  EXPECT_GT(crossed, 1);
  add(500, 0);
  EXPECT_EQ(test.largest_evidence(), crossed);
  add(500, 0);
  EXPECT_LT(test.largest_evidence(), 1);
}

TEST(SequentialTestTest, EqualRowsGiveEqualEvidence) {
  const DriftReference reference = MakeReference(2, 16, 300, 4);
  SequentialTest one(reference, {.seed = 1});
  SequentialTest same(reference, {.seed = 1});
  SequentialTest other(reference, {.seed = 2});
  RandomCursor random(RandomStream(5, StreamId::kLabRows));
  for (int i = 0; i < 400; ++i) {
    const double scores[] = {random.UniformOpen01(), random.UniformOpen01()};
    one.Add(scores);
    same.Add(scores);
    other.Add(scores);
  }
  EXPECT_EQ(one.largest_evidence(), same.largest_evidence());
  EXPECT_NE(one.largest_evidence(), other.largest_evidence());
}

}  // namespace
}  // namespace phimap::testing
