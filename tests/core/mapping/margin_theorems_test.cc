// The theorems on margins of Balcan, Blum, Vempala 2006 and Blum 2005, run where every probability
// is known: D is uniform on nine categories, K = delta() is 1 for equal ones, so that φ(i) is axis
// i of R⁹, and w = Σ c_i φ(i)/3 separates labels c_i = ±1 with margin γ = 1/3. The separator that
// each proof constructs is measured, of maps that the builders made. A theorem that holds with
// probability 1 − δ fails in T trials more than δT + 6√(δT) times only for a bug.
#include <cmath>
#include <vector>

#include "core/linalg/blas.h"
#include "core/mapping/landmark_mapping.h"
#include "core/mapping/random_projection.h"
#include "core/random/random_stream.h"
#include "core/theory/landmark_bounds.h"
#include "core/theory/projection_bounds.h"
#include "gtest/gtest.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap {
namespace {

using testing::MustParseKernel;
using testing::MustTransformWide;
using testing::WireRows;

constexpr int kCategories = 9;
constexpr double kMargin = 1.0 / 3;
constexpr double kError = 0.2;
constexpr double kDelta = 0.05;
constexpr int kTrials = 200;
// At most.
const double kFailures = kDelta * kTrials + 6 * std::sqrt(kDelta * kTrials);

double Sign(int category) { return category % 2 == 0 ? 1 : -1; }

// Independent draws from D, as rows of one column.
Matrix<double> Draw(int64_t count, uint64_t seed) {
  const RandomStream stream(seed, StreamId::kLandmarks);
  Matrix<double> rows(count, 1);
  for (int64_t i = 0; i < count; ++i) {
    rows(i, 0) = static_cast<double>(stream.UniformBelow(static_cast<uint64_t>(i), kCategories));
  }
  return rows;
}

std::vector<int64_t> CountsOf(const Matrix<double>& landmarks) {
  std::vector<int64_t> counts(kCategories);
  for (int64_t i = 0; i < landmarks.rows(); ++i) ++counts[static_cast<int>(landmarks(i, 0))];
  return counts;
}

LandmarkTask TheoremTask(const Matrix<double>& landmarks) {
  UseOneBlasThread();
  return {.kernel = MustParseKernel("delta()"),
          .input = {.columns = 1},
          .landmarks = landmarks.view(),
          .serving_type = FloatType::kFloat64};
}

// F of each category.
Matrix<double> FeaturesOf(const PlanPair& plans) {
  Matrix<double> categories(kCategories, 1);
  for (int i = 0; i < kCategories; ++i) categories(i, 0) = i;
  return MustTransformWide(plans.served, WireRows(categories));
}

// Σ α_j F(x_j) over landmarks, where Σ α_j φ(x_j) is the part of w in their span.
std::vector<double> Separator(const Matrix<double>& features, const std::vector<int64_t>& counts) {
  std::vector<double> w(static_cast<size_t>(features.cols()));
  for (int i = 0; i < kCategories; ++i) {
    if (counts[i] == 0) continue;
    for (int64_t k = 0; k < features.cols(); ++k) w[k] += Sign(i) * kMargin * features(i, k);
  }
  return w;
}

// The probability that D gives a row that w has on the wrong side, or under this margin. The labels
// of the first `missed` categories are the other way round.
double ErrorAtMargin(const Matrix<double>& features, const std::vector<double>& w, double margin,
                     int missed = 0) {
  int wrong = 0;
  for (int i = 0; i < kCategories; ++i) {
    double product = 0;
    double square = 0;
    double length = 0;
    for (int64_t k = 0; k < features.cols(); ++k) {
      product += w[k] * features(i, k);
      square += features(i, k) * features(i, k);
      length += w[k] * w[k];
    }
    const double label = i < missed ? -Sign(i) : Sign(i);
    const bool right =
        label * product > 0 && label * product >= margin * std::sqrt(square * length);
    wrong += right ? 0 : 1;
  }
  return static_cast<double>(wrong) / kCategories;
}

// Corollary 1: α over the landmarks separates (K(x, x_1) … K(x, x_d)) but for ε; BBV 4.1: where a
// share of the labels is not w's, but for that share more.
TEST(MarginTheoremsTest, F1IsSeparableButForTheError) {
  const auto failures = [](int64_t d, int missed) {
    int count = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const Matrix<double> landmarks = Draw(d, trial);
      const std::vector<int64_t> counts = CountsOf(landmarks);
      std::vector<double> alpha;
      for (int64_t j = 0; j < d; ++j) {
        const int category = static_cast<int>(landmarks(j, 0));
        alpha.push_back(Sign(category) / static_cast<double>(counts[category]));
      }
      const Matrix<double> features = FeaturesOf(*BuildF1(TheoremTask(landmarks)));
      const double allowed = kError + static_cast<double>(missed) / kCategories;
      count += ErrorAtMargin(features, alpha, 0, missed) > allowed ? 1 : 0;
    }
    return count;
  };
  const int64_t d = BinomialLandmarks(kMargin, kError, kDelta).value();
  EXPECT_LE(failures(d, 0), kFailures);
  EXPECT_LE(failures(d, 1), kFailures);
  EXPECT_EQ(failures(4, 0), kTrials);  // five categories and more are not among the landmarks
}

// Theorem 1 of BBV, 4 of BS: F2 keeps half the margin.
TEST(MarginTheoremsTest, F2IsSeparableAtHalfTheMarginButForTheError) {
  const auto failures = [](int64_t d, int missed) {
    int count = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const Matrix<double> landmarks = Draw(d, trial);
      const Matrix<double> features = FeaturesOf(*BuildF2(TheoremTask(landmarks), NeverStop));
      const double allowed = kError + static_cast<double>(missed) / kCategories;
      const double error =
          ErrorAtMargin(features, Separator(features, CountsOf(landmarks)), kMargin / 2, missed);
      count += error > allowed ? 1 : 0;
    }
    return count;
  };
  const int64_t d = BinomialLandmarks(kMargin, kError, kDelta).value();
  EXPECT_LE(failures(d, 0), kFailures);
  EXPECT_LE(failures(d, 1), kFailures);
  EXPECT_EQ(failures(4, 0), kTrials);
}

// Theorem 3 of BBV, 5 of BS: F3 a quarter of it.
TEST(MarginTheoremsTest, F3IsSeparableAtAQuarterOfTheMarginButForTheError) {
  const int64_t d2 = BinomialLandmarks(kMargin, kError / 2, kDelta / 2).value();
  const auto failures = [d2](int64_t d3) {
    int count = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const Matrix<double> landmarks = Draw(d2, trial);
      const Matrix<double> features =
          FeaturesOf(*BuildF3(TheoremTask(landmarks),
                              {.dimensions = d3, .seed = static_cast<uint64_t>(trial)}, NeverStop));
      const std::vector<double> w = Separator(features, CountsOf(landmarks));
      count += ErrorAtMargin(features, w, kMargin / 4) > kError ? 1 : 0;
    }
    return count;
  };
  EXPECT_LE(failures(F3Dimensions(Tier::kExact, kMargin, kError, kDelta).value()), kFailures);
  EXPECT_GT(failures(3), kTrials / 2);
}

// Theorem 3 of BS: so does a projection of φ-space itself, at half the margin. The number of
// dimensions is the exact law's, so that this is close.
TEST(MarginTheoremsTest, ADirectProjectionIsSeparableAtHalfTheMarginButForTheError) {
  Matrix<double> axes(kCategories, kCategories);
  for (int i = 0; i < kCategories; ++i) axes(i, i) = 1;
  const auto failures = [&axes](int64_t dimensions) {
    int count = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const InputStage input{.columns = kCategories};
      const absl::StatusOr<PlanPair> plans = BuildRandomProjection(
          {.input = input, .serving_type = FloatType::kFloat64}, 1,
          {.dimensions = dimensions, .seed = static_cast<uint64_t>(trial)}, NeverStop);
      const Matrix<double> features = MustTransformWide(plans->served, WireRows(axes));
      const std::vector<double> w = Separator(features, std::vector<int64_t>(kCategories, 1));
      count += ErrorAtMargin(features, w, kMargin / 2) > kError ? 1 : 0;
    }
    return count;
  };
  EXPECT_LE(failures(DirectDimensions(kMargin, kError, kDelta)), kFailures);
  EXPECT_GT(failures(3), kTrials / 2);
}

}  // namespace
}  // namespace phimap
