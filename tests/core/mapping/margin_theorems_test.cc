// Tests the theorems on margins of Balcan, Blum, Vempala 2006 (BBV) and of Blum 2005 (BS) with maps
// from the real builders. The distributions make the theorems as tight as we know how to.
//
// A theorem that holds with probability 1 − δ may fail as often as AreAsRareAs allows. With fewer
// landmarks or dimensions it must fail in more trials, because otherwise the test could not detect
// a wrong bound. The kernel is linear(), so φ(x) = x.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/linalg/blas.h"
#include "core/mapping/f1_f2_f3/landmark_mapping.h"
#include "core/mapping/projection/random_projection.h"
#include "core/random/stream_ids.h"
#include "core/theory/landmark_bounds.h"
#include "core/theory/projection_bounds.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"
#include "tests/support/rare_failures.h"

namespace phimap::testing {
namespace {

// A distribution on finitely many unit vectors, with labels.
struct LabeledPoints {
  Matrix<double> points;
  std::vector<double> masses;  // their sum is 1
  std::vector<double> labels;  // 1 or −1
};

// Returns the indices of `count` independent draws.
std::vector<int64_t> DrawnPoints(const LabeledPoints& distribution, int64_t count, uint64_t seed) {
  const RandomStream stream(seed, StreamId::kLandmarks);
  std::vector<int64_t> drawn;
  for (int64_t i = 0; i < count; ++i) {
    double rest = stream.UniformOpen01(static_cast<uint64_t>(i));
    size_t point = 0;
    while (point + 1 < distribution.masses.size() && rest >= distribution.masses[point]) {
      rest -= distribution.masses[point++];
    }
    drawn.push_back(static_cast<int64_t>(point));
  }
  return drawn;
}

Matrix<double> RowsOfPoints(const LabeledPoints& distribution, const std::vector<int64_t>& drawn) {
  Matrix<double> rows(static_cast<int64_t>(drawn.size()), distribution.points.cols());
  for (size_t i = 0; i < drawn.size(); ++i) {
    std::copy_n(distribution.points.row(drawn[i]), rows.cols(), rows.row(i));
  }
  return rows;
}

LandmarkTask LinearTask(const Matrix<double>& landmarks) {
  UseOneBlasThread();
  return {.kernel = MustParseKernel("linear()"),
          .input = {.columns = landmarks.cols()},
          .landmarks = landmarks.view(),
          .serving_type = FloatType::kFloat64};
}

double InnerProduct(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += a[k] * b[k];
  return sum;
}

// Returns the probability of the points that `w` puts on the wrong side, or on the right side with
// less than the margin. All points have ‖φ(x)‖ = 1.
double ErrorAtMargin(const LabeledPoints& distribution, const Matrix<double>& features,
                     const double* w, double margin) {
  const double length = std::sqrt(InnerProduct(w, w, features.cols()));
  double error = 0;
  for (int64_t i = 0; i < features.rows(); ++i) {
    const double y = distribution.labels[i] * InnerProduct(w, features.row(i), features.cols());
    if (y <= 1e-12 || y < margin * length) error += distribution.masses[i];
  }
  return error;
}

// Returns a distribution on two directions with an angle of `degrees` between them. The rare
// direction has a probability just over `error`. A probability of `missed` has the common direction
// with the wrong label. The rest has the common direction with the right label.
LabeledPoints OneRareDirection(double degrees, double error, double missed) {
  const double angle = degrees * std::acos(-1.0) / 180;
  const double rare = error + 1e-9;
  LabeledPoints distribution{.points = Matrix<double>(3, 2),
                             .masses = {1 - rare - missed, rare, missed},
                             .labels = {1, 1, -1}};
  distribution.points(0, 0) = distribution.points(2, 0) = 1;
  distribution.points(1, 0) = std::abs(degrees - 90) < 1e-9 ? 0 : std::cos(angle);
  distribution.points(1, 1) = std::sin(angle);
  return distribution;
}

// Corollary 1: some vector α over the d landmarks separates the F1 features (K(x, x_1) … K(x, x_d))
// with an error of at most ε. BBV 4.1: if the labels differ from those of the separator w on a
// share of the examples, the error is larger by this share.
//
// The test uses two orthogonal directions, which have the margin 1/√2. If the rare one is not among
// the landmarks, its F1 features are 0, and no α puts it on the right side. This has probability (1
// − ε)^d. The theorem requires 54 landmarks, because it counts 7 helpful draws although one is
// enough here. 20 landmarks are enough for δ = 0.001 (0.7^20 = 8.0e-4, 0.7^19 = 1.1e-3).
TEST(MarginTheoremsTest, F1IsSeparableButForTheError) {
  constexpr double kError = 0.3;
  constexpr double kDelta = 0.001;
  constexpr int kTrials = 5000;
  const auto holds = [](int64_t d, double missed) {
    const LabeledPoints distribution = OneRareDirection(90, kError, missed);
    int failures = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const std::vector<int64_t> drawn = DrawnPoints(distribution, d, trial);
      const double rare = static_cast<double>(std::count(drawn.begin(), drawn.end(), 1));
      std::vector<double> alpha;
      for (const int64_t point : drawn) {
        alpha.push_back(1 / (point == 1 ? rare : static_cast<double>(d) - rare));
      }
      const Matrix<double> landmarks = RowsOfPoints(distribution, drawn);
      const Matrix<double> features =
          MustTransformWide(BuildF1(LinearTask(landmarks))->served, WireRows(distribution.points));
      failures += ErrorAtMargin(distribution, features, alpha.data(), 0) > kError + missed ? 1 : 0;
    }
    return AreAsRareAs(kDelta, failures, kTrials);
  };
  const int64_t d = BinomialLandmarks(std::sqrt(0.5), kError, kDelta).value();
  EXPECT_EQ(d, 54);
  for (const double missed : {0.0, 0.1}) {
    EXPECT_TRUE(holds(d, missed)) << missed;
    EXPECT_TRUE(holds(20, missed)) << missed;
    EXPECT_FALSE(holds(10, missed)) << missed;
  }
}

// Theorem 1 of BBV (4 of BS): F2 keeps half of the margin γ. The test uses two directions 65.5°
// apart. The vector w halfway between them has the margin 0.841. If the rare direction is not among
// the landmarks, F2 has only one dimension, the common direction. The cosine of the rare direction
// with it is 0.4147, which is below γ/2. (Like the proof, this cosine divides by ‖φ(x)‖ and not by
// the smaller ‖F2(x)‖.) With a third of the theorem's number d of landmarks, the test must fail.
TEST(MarginTheoremsTest, F2IsSeparableAtHalfTheMarginButForTheError) {
  constexpr double kError = 0.3;
  constexpr double kDelta = 0.001;
  constexpr double kMargin = 0.84;
  constexpr int kTrials = 5000;
  const auto holds = [&](int64_t d, double missed) {
    const LabeledPoints distribution = OneRareDirection(65.5, kError, missed);
    // w is halfway between the two directions. The coordinates of its part in the span are F2(w).
    Matrix<double> points(4, 2);
    std::copy_n(distribution.points.data(), 6, points.data());
    for (int k = 0; k < 2; ++k) points(3, k) = points(0, k) + points(1, k);
    EXPECT_GT(points(3, 0) / std::hypot(points(3, 0), points(3, 1)), kMargin);
    int failures = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const Matrix<double> landmarks =
          RowsOfPoints(distribution, DrawnPoints(distribution, d, static_cast<uint64_t>(trial)));
      const Matrix<double> f =
          MustTransformWide(BuildF2(LinearTask(landmarks), NeverStop)->served, WireRows(points));
      Matrix<double> features(3, f.cols());
      std::copy_n(f.data(), features.size(), features.data());
      const double error = ErrorAtMargin(distribution, features, f.row(3), kMargin / 2);
      failures += error > kError + missed ? 1 : 0;
    }
    return AreAsRareAs(kDelta, failures, kTrials);
  };
  const int64_t d = BinomialLandmarks(kMargin, kError, kDelta).value();
  EXPECT_EQ(d, 44);
  for (const double missed : {0.0, 0.1}) {
    EXPECT_TRUE(holds(d, missed)) << missed;
    EXPECT_FALSE(holds(d / 3, missed)) << missed;
  }
}

// A distribution with one common point c and N = 100 rare points. c and e_1 … e_N are orthonormal.
// Rare point number i is a·c + b·e_i. The separator is w = α·c + β·(e_1 + … + e_N), with a·α = b·β
// just over γ/2.
//
// As long as point i is not drawn, the part of w along e_i is outside of the span of the drawn
// points, and the product of point i with this part is b·β > γ/2. So each new rare point is a draw
// that helps in the sense of the proof. No draw helps by more than the proof requires: at most N =
// 100 draws help, and the proof allows 121. The rare points have the total probability ρ = e·ε,
// where e is Euler's number. This choice requires the largest number of landmarks.
struct RareDirections {
  static constexpr int kCount = 100;
  static constexpr double kError = 0.3;
  static constexpr double kDelta = 0.05;
  static constexpr double kMass = 2.718281828459045 * kError;

  // Row 0 is the common point c, row N + 1 is the separator w.
  Matrix<double> points{kCount + 2, kCount + 1};
  double margin = 0;

  RareDirections() {
    const double alpha = std::sqrt(1.0 / 11);
    const double beta = std::sqrt((1 - alpha * alpha) / kCount);
    const double a = 1 / (11 * alpha);
    margin = 2.0 / 11 * (1 - 1e-9);
    points(0, 0) = 1;
    points(kCount + 1, 0) = alpha;
    for (int i = 1; i <= kCount; ++i) {
      points(i, 0) = a;
      points(i, i) = std::sqrt(1 - a * a);
      points(kCount + 1, i) = beta;
    }
  }
  // Returns independent examples.
  Matrix<double> Stream(int64_t count, uint64_t seed) const {
    const RandomStream random(seed, StreamId::kSelfCheck);
    Matrix<double> rows(count, kCount + 1);
    for (int64_t i = 0; i < count; ++i) {
      const double u = random.UniformOpen01(static_cast<uint64_t>(i));
      const int64_t point = u < kMass ? 1 + static_cast<int64_t>(u / kMass * kCount) : 0;
      std::copy_n(points.row(point), kCount + 1, rows.row(i));
    }
    return rows;
  }
};

// Tests Lemma 1 on landmarks that builds chose from their streams. w' is the part of the separator
// w in the span of the landmarks. The lemma states that the products of an example with w and with
// w' differ by at most γ/2, except for a mass ε of the examples.
//
// The binomial law requires d = 455 landmarks, and with these the lemma holds. With a quarter, 113
// landmarks, it must fail, and as often as the occupancy law of the rare points predicts: if 113
// balls are each thrown into one of 100 boxes with probability ρ, more than N/e = 36.8 boxes stay
// empty with probability 0.8175. (e is Euler's number.) (A Python program computed this with the
// law's Markov chain.)
//
// By the same law, this distribution needs 145 landmarks, so d is 3.1 times too large. A factor of
// 1.2 of this is due to N = 100 instead of 121. The rest is due to the mass that is not drawn yet:
// it falls with each draw, but the bound assumes that it stays at ε. For orthogonal rare
// directions, this makes d too large by a factor of about e.
TEST(MarginTheoremsTest, LemmaOneHoldsOnTheLandmarksOfABuildWithManyRareDirections) {
  constexpr int kTrials = 120;
  const RareDirections rare;
  const auto failures = [&rare](int64_t d) {
    const std::string mapping = "f2(landmarks=" + std::to_string(d) + ", serving_type=float64)";
    int count = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const auto seed = static_cast<uint64_t>(trial);
      const BuiltVersion built =
          MustBuild(SpecOf(mapping, "linear()", false, seed), rare.Stream(d + 40, seed));
      const Matrix<double> f = FeaturesFrom(built, rare.points);
      const int w = RareDirections::kCount + 1;
      int lost = 0;
      for (int i = 1; i < w; ++i) {
        const double exact = InnerProduct(rare.points.row(w), rare.points.row(i), w);
        lost += exact - InnerProduct(f.row(w), f.row(i), f.cols()) > rare.margin / 2 ? 1 : 0;
      }
      count += lost * RareDirections::kMass / RareDirections::kCount > RareDirections::kError;
    }
    return count;
  };
  const int64_t d =
      BinomialLandmarks(rare.margin, RareDirections::kError, RareDirections::kDelta).value();
  EXPECT_EQ(d, 455);
  EXPECT_TRUE(AreAsRareAs(RareDirections::kDelta, failures(d), kTrials));
  const int of_few = failures(d / 4);
  EXPECT_FALSE(AreAsRareAs(RareDirections::kDelta, of_few, kTrials));
  EXPECT_NEAR(of_few, 0.8175 * kTrials, 6 * std::sqrt(0.8175 * 0.1825 * kTrials));
}

// Returns unit rows, followed by a separator in the last row. Each row has the cosine γ = `margin`
// to w = e_0 and is in a plane of its own. The last row is w' = w/2 + (√3/2)·e_1, with which the
// other rows have the cosine γ/2.
Matrix<double> ExamplesAndSeparator(int64_t examples, double margin) {
  Matrix<double> points(examples + 1, examples + 2);
  for (int64_t i = 0; i < examples; ++i) {
    points(i, 0) = margin;
    points(i, i + 2) = std::sqrt(1 - margin * margin);
  }
  points(examples, 0) = 0.5;
  points(examples, 1) = std::sqrt(0.75);
  return points;
}

// A margin γ, an error ε and a probability δ, with the numbers that Theorem 3 needs for them: the
// literal d2 landmarks and the exact law's d3 dimensions.
struct Triple {
  double margin, error, delta;
  int64_t landmarks, dimensions;
  // Rank of the data, over d3 and under d2.
  int64_t rank;
  int trials;
};

// Theorem 3 of BBV (5 of BS): F3 keeps a quarter of the margin γ. F3 has two steps: F2 on landmarks
// may halve the margin, and a random projection may halve it again. The examples have margin γ with
// w, but only γ/2 with w', which is the smallest margin that the first step may leave.
//
// The landmarks are those of the literal tier. The dimensions are those of the exact law, because
// the literal and derived tiers require more dimensions than there are landmarks, and no such map
// exists. With them, the margin of an example falls below γ/4 with probability at most εδ/4. A
// third of them must lose more than three times as many examples.
//
// The theorem itself states less, because it uses Markov's inequality: the share of such examples
// is at most ε. That share is so small at the exact law's dimensions that no draw comes near to ε,
// and a third of them keeps it too; a twenty-fourth does not. At (0.5, 0.1, 0.05) about 98
// dimensions make the probability for a single example as small as ε (scipy).
TEST(MarginTheoremsTest, F3IsSeparableAtAQuarterOfTheMarginButForTheError) {
  for (const Triple& t :
       {Triple{0.5, 0.1, 0.05, 1231, 544, 600, 4}, Triple{0.7, 0.2, 0.1, 403, 188, 230, 40},
        Triple{0.9, 0.1, 0.2, 566, 103, 160, 40}}) {
    SCOPED_TRACE(t.margin);
    EXPECT_EQ(LiteralLandmarks(t.margin, t.error / 2, t.delta / 2).value(), t.landmarks);
    EXPECT_EQ(F3Dimensions(Tier::kExact, t.margin, t.error, t.delta).value(), t.dimensions);
    for (const Tier tier : {Tier::kLiteral, Tier::kDerived}) {
      EXPECT_GT(F3Dimensions(tier, t.margin, t.error, t.delta).value(), t.landmarks);
    }
    const int64_t examples = t.rank - 2;
    const Matrix<double> points = ExamplesAndSeparator(examples, t.margin);
    // Returns how many examples each draw of landmarks and projection loses.
    const auto lost = [&](int64_t d3) {
      std::vector<int64_t> counts;
      for (int trial = 0; trial < t.trials; ++trial) {
        const auto seed = static_cast<uint64_t>(trial);
        const Matrix<double> landmarks =
            NormalRows({.rows = t.landmarks, .cols = t.rank, .seed = 5 + seed});
        const Matrix<double> f = MustTransformWide(
            BuildF3(LinearTask(landmarks), {.dimensions = d3, .seed = seed}, NeverStop)->served,
            WireRows(points));
        const double* w = f.row(examples);
        int64_t wrong = 0;
        for (int64_t i = 0; i < examples; ++i) {
          const double lengths = InnerProduct(w, w, d3) * InnerProduct(f.row(i), f.row(i), d3);
          wrong += InnerProduct(w, f.row(i), d3) < t.margin / 4 * std::sqrt(lengths) ? 1 : 0;
        }
        counts.push_back(wrong);
      }
      return counts;
    };
    const auto sum = [](const std::vector<int64_t>& counts) {
      return std::accumulate(counts.begin(), counts.end(), int64_t{0});
    };
    const auto failures = [&](const std::vector<int64_t>& counts) {
      return std::count_if(counts.begin(), counts.end(), [&](int64_t wrong) {
        return static_cast<double>(wrong) > t.error * static_cast<double>(examples);
      });
    };
    const double each = t.error * t.delta / 4;
    const std::vector<int64_t> stated = lost(t.dimensions);
    EXPECT_TRUE(AreAsRareAs(t.delta, failures(stated), t.trials));
    EXPECT_TRUE(AreAsRareAs(each, sum(stated), t.trials * examples)) << sum(stated);
    const std::vector<int64_t> third = lost(t.dimensions / 3);
    EXPECT_FALSE(AreAsRareAs(3 * each, sum(third), t.trials * examples)) << sum(third);
    EXPECT_FALSE(AreAsRareAs(t.delta, failures(lost(t.dimensions / 24)), t.trials));
  }
}

// Theorem 3 of BS: a random projection of φ-space itself keeps half of the margin γ. The test has a
// single example, whose cosine with the separator is γ. Its error is 0 or 1, so the test allows to
// lose the example with probability δ. The theorem states the smaller probability εδ. By the law of
// the correlation coefficient (scipy), 171 dimensions are needed for εδ and 86 for δ.
TEST(MarginTheoremsTest, ADirectProjectionIsSeparableAtHalfTheMarginButForTheError) {
  constexpr double kMargin = 1.0 / 3;
  constexpr double kError = 0.2;
  constexpr double kDelta = 0.05;
  constexpr int kTrials = 4000;
  Matrix<double> points(2, 2);
  points(0, 0) = 1;
  points(1, 0) = kMargin;
  points(1, 1) = std::sqrt(1 - kMargin * kMargin);
  const auto holds = [&points](int64_t dimensions) {
    const InputStage input{.columns = 2};
    int failures = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const absl::StatusOr<PlanPair> plans = BuildRandomProjection(
          {.input = input, .serving_type = FloatType::kFloat64}, 1,
          {.dimensions = dimensions, .seed = static_cast<uint64_t>(trial)}, NeverStop);
      const Matrix<double> f = MustTransformWide(plans->served, WireRows(points));
      const double lengths = InnerProduct(f.row(0), f.row(0), dimensions) *
                             InnerProduct(f.row(1), f.row(1), dimensions);
      failures +=
          InnerProduct(f.row(0), f.row(1), dimensions) < kMargin / 2 * std::sqrt(lengths) ? 1 : 0;
    }
    return AreAsRareAs(kDelta, failures, kTrials);
  };
  const int64_t n = DirectDimensions(kMargin, kError, kDelta);
  EXPECT_EQ(n, 171);
  EXPECT_TRUE(holds(n));
  EXPECT_TRUE(holds(86));
  EXPECT_FALSE(holds(n / 3));
}

}  // namespace
}  // namespace phimap::testing
