// Rows that pass until the test for drift finds a planted shift, with the promise that servers
// make: at most 5 % false alarms in 30 days of ten rows a second. docs/maths.md states these
// delays.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <optional>
#include <vector>

#include "core/drift/sequential_test.h"
#include "core/random/stream_ids.h"
#include "gtest/gtest.h"
#include "tests/core/drift/resampled_rows.h"

namespace phimap::testing {
namespace {

constexpr int kDelayRuns = 7;
// Rows without a shift before it begins, and rows after which it counts as not found.
constexpr int64_t kCleanRows = 2000;
constexpr int64_t kPatience = 6000;

// Draws the scores of a row t rows after the shift began; before it began, t is negative.
using DrawScores = std::function<const double*(int64_t t, RandomCursor& random)>;

// Returns the median over the runs of the number of rows until the alarm. Ends a run at kPatience.
int64_t MedianDelay(const BuiltData& data, const DrawScores& draw) {
  std::vector<int64_t> delays;
  for (uint64_t run = 0; run < kDelayRuns; ++run) {
    SequentialTest test(*data.reference, {.seed = run});
    RandomCursor random(RandomStream(run + 100, StreamId::kLabRows));
    int64_t t = -kCleanRows;
    while (t < kPatience && (t % 10 != 0 || test.largest_evidence() < 1)) {
      test.Add(draw(t, random));
      ++t;
    }
    EXPECT_GE(t, 0) << "alarm before the shift";
    delays.push_back(t);
  }
  std::sort(delays.begin(), delays.end());
  return delays[kDelayRuns / 2];
}

// A shift inside the landmarks' span: every row is a row of the data set, but rows that score high
// are drawn more often. Rows get weights exp(δz), where z is the score in deviations from its mean;
// δ is set so that the mean of the score moves by `deviations` of them.
class Tilt {
 public:
  Tilt(const BuiltData& data, int64_t score, double deviations) : data_(data) {
    const int64_t n = data.rows.rows();
    std::vector<double> z(static_cast<size_t>(n));
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) sum += z[i] = data.scores(i, score);
    for (double& value : z) value -= sum / static_cast<double>(n);
    for (const double value : z) squares += value * value;
    for (double& value : z) value /= std::sqrt(squares / static_cast<double>(n));
    double low = 0, high = 2;
    for (int step = 0; step < 50; ++step) {
      const double delta = (low + high) / 2;
      (MeanUnder(z, delta) < deviations ? low : high) = delta;
    }
    MeanUnder(z, low);
    EXPECT_NEAR(MeanUnder(z, low), deviations, 1e-6);
  }

  int64_t Draw(RandomCursor& random) const {
    const double at = random.UniformOpen01() * sums_.back();
    return std::lower_bound(sums_.begin(), sums_.end(), at) - sums_.begin();
  }

 private:
  // Sets the sums of the weights for δ, and returns the mean of z under them.
  double MeanUnder(const std::vector<double>& z, double delta) {
    sums_.clear();
    double weights = 0, mean = 0;
    for (const double value : z) {
      const double weight = std::exp(delta * value);
      weights += weight;
      mean += weight * value;
      sums_.push_back(weights);
    }
    return mean / weights;
  }

  const BuiltData& data_;
  std::vector<double> sums_;
};

// Returns the index of the first score of this kind.
int64_t FirstOf(const BuiltData& data, ScoreKind kind) {
  const auto& functions = data.reference->scores.functions;
  return std::find_if(functions.begin(), functions.end(),
                      [&](const ScoreFunction& f) { return f.kind == kind; }) -
         functions.begin();
}

int64_t TiltDelay(const BuiltData& data, ScoreKind kind, double deviations) {
  const Tilt tilt(data, FirstOf(data, kind), deviations);
  return MedianDelay(data, [&](int64_t t, RandomCursor& random) {
    return data.scores.row(t < 0 ? data.Draw(random) : tilt.Draw(random));
  });
}

// The tilt grows from none to `deviations` over 4,000 rows: a row is tilted with a probability that
// grows.
int64_t SlowDelay(const BuiltData& data, double deviations) {
  const Tilt tilt(data, FirstOf(data, ScoreKind::kDirection), deviations);
  return MedianDelay(data, [&](int64_t t, RandomCursor& random) {
    const bool tilted = t > 0 && random.UniformOpen01() * 4000 < static_cast<double>(t);
    return data.scores.row(tilted ? tilt.Draw(random) : data.Draw(random));
  });
}

// One column is moved by `deviations` of its own. All other columns stay as they are. The column is
// moved in steps of `unit`: a row moves by one unit with the probability that gives the mean.
int64_t ColumnDelay(const BuiltData& data, int64_t column, double unit, double deviations) {
  double sum = 0, squares = 0;
  const auto n = static_cast<double>(data.rows.rows());
  for (int64_t i = 0; i < data.rows.rows(); ++i) {
    sum += data.rows(i, column);
    squares += data.rows(i, column) * data.rows(i, column);
  }
  const double deviation = std::sqrt(squares / n - sum / n * (sum / n));
  Matrix<double> moved = data.rows.Clone();
  for (int64_t i = 0; i < moved.rows(); ++i) moved(i, column) += unit;
  const Matrix<double> scores = data.ScoresOf(moved);
  const double share = deviations * deviation / unit;
  EXPECT_LE(share, 1);
  return MedianDelay(data, [&, share](int64_t t, RandomCursor& random) {
    const bool moves = t >= 0 && random.UniformOpen01() < share;
    return (moves ? scores : data.scores).row(data.Draw(random));
  });
}

// Prints the delay and expects it to be at most `most`, and at least a third of it: the statement
// in docs/maths.md is neither exceeded nor far too large.
void ExpectDelay(const char* what, int64_t delay, int64_t most) {
  std::printf("%s: %d rows\n", what, static_cast<int>(delay));
  EXPECT_LE(delay, most) << what;
  EXPECT_GE(delay, most / 3) << what;
}

TEST(DriftDelayTest, LetterWithF2) {
  const BuiltData data("letter.csv", "f2(landmarks=200)", "rbf(gamma=scale)");
  ExpectDelay("span .3", TiltDelay(data, ScoreKind::kDirection, 0.3), 800);
  ExpectDelay("span .2", TiltDelay(data, ScoreKind::kDirection, 0.2), 2500);
  ExpectDelay("slow .3", SlowDelay(data, 0.3), 4500);
  ExpectDelay("column .3", ColumnDelay(data, 5, 1, 0.3), 800);
  ExpectDelay("column .2", ColumnDelay(data, 5, 1, 0.2), 2500);
}

// The test cannot see shifts of a tenth of a deviation: most runs find none within 6,000 rows.
TEST(DriftDelayTest, ATenthOfADeviationIsMostlyNotFound) {
  const BuiltData data("letter.csv", "f2(landmarks=200)", "rbf(gamma=scale)");
  EXPECT_EQ(TiltDelay(data, ScoreKind::kDirection, 0.1), kPatience);
}

TEST(DriftDelayTest, SpamWithFourierFeatures) {
  const BuiltData data("spam.csv", "fourier(dimensions=200)", "rbf(gamma=scale)");
  ExpectDelay("span .3", TiltDelay(data, ScoreKind::kDirection, 0.3), 800);
  ExpectDelay("span .2", TiltDelay(data, ScoreKind::kDirection, 0.2), 2500);
  ExpectDelay("slow .3", SlowDelay(data, 0.3), 4500);
  ExpectDelay("column .3", ColumnDelay(data, 18, 1, 0.3), 800);
  ExpectDelay("column .2", ColumnDelay(data, 18, 1, 0.2), 2500);
}

}  // namespace
}  // namespace phimap::testing
