#include "core/drift/drift_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/drift/reference_making.h"
#include "core/linalg/blas.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/artifact_surgery.h"
#include "tests/support/matchers.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

// Returns a reference that was made from random rows of three columns and five features.
DriftReference Made(int64_t held_out = 150) {
  UseOneBlasThread();
  const Matrix<double> choosing = NormalRows({.rows = 140, .cols = 3, .seed = 1});
  const Matrix<double> rows = NormalRows({.rows = held_out, .cols = 3, .seed = 2});
  const Plan plan = MakePlan({.columns = 3, .feature_count = 5});
  const auto choosing_features = MustTransform<float>(plan, WireRows(choosing));
  const auto features = MustTransform<float>(plan, WireRows(rows));
  DriftReference reference =
      *MakeDriftReference({.choosing = {WireRows(choosing), WireRows(choosing_features)},
                           .held_out = {WireRows(rows), WireRows(features)},
                           .has_columns = true});
  reference.stream_rows = 1000;
  reference.low = {-1, -2, -3};
  reference.high = {1, 2, 3};
  return reference;
}

TEST(DriftReferenceTest, BytesAndContentSurvive) {
  const DriftReference reference = Made();
  const std::string bytes = EncodeDriftReference(reference);
  const auto decoded = DecodeDriftReference(bytes).value();
  EXPECT_EQ(EncodeDriftReference(decoded), bytes);
  EXPECT_EQ(decoded.rows, 150);
  EXPECT_EQ(decoded.stream_rows, 1000);
  EXPECT_EQ(decoded.scores.functions, reference.scores.functions);
  EXPECT_EQ(decoded.mean, reference.mean);
  EXPECT_EQ(decoded.scatter, reference.scatter);
  EXPECT_EQ(decoded.low, reference.low);
  EXPECT_EQ(decoded.high, reference.high);
  for (size_t s = 0; s < reference.histograms.size(); ++s) {
    EXPECT_EQ(decoded.histograms[s].edges, reference.histograms[s].edges);
    EXPECT_EQ(decoded.histograms[s].counts, reference.histograms[s].counts);
  }
}

// The bytes may come from anybody: every cut and every changed byte is decoded to a reference that
// is written with the same bytes, or refused.
TEST(DriftReferenceTest, DamagedBytesAreRefusedOrAnotherReference) {
  const std::string bytes = EncodeDriftReference(Made());
  for (size_t length = 0; length < bytes.size(); length += length < 400 ? 1 : 17) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeDriftReference(bytes.substr(0, length)).status())) << length;
  }
  EXPECT_TRUE(absl::IsDataLoss(DecodeDriftReference(bytes + '\0').status()));
  std::string damaged = bytes;
  int64_t refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    const char flips[] = {'\x01', '\x80', '\x7f'};
    damaged[at] = static_cast<char>(bytes[at] ^ flips[at % 3]);
    const auto decoded = DecodeDriftReference(damaged);
    if (decoded.ok()) {
      EXPECT_EQ(EncodeDriftReference(*decoded), damaged);
    } else {
      ++refused;
    }
    damaged[at] = bytes[at];
  }
  EXPECT_GT(refused, 1000);
}

TEST(DriftReferenceTest, LargeCountsAllocateNothing) {
  const std::string bytes = EncodeDriftReference(Made());
  // rows, rows of the stream, features, columns: i64 each; then the count of directions.
  for (const int64_t offset : {0, 8, 16, 24}) {
    for (const int64_t value : {int64_t{-1}, int64_t{0}, std::numeric_limits<int64_t>::max()}) {
      if (offset == 24 && value == 0) continue;
      std::string damaged = bytes;
      WriteAt<int64_t>(damaged, offset, value);
      EXPECT_TRUE(absl::IsDataLoss(DecodeDriftReference(damaged).status())) << offset;
    }
  }
  std::string damaged = bytes;
  WriteAt<uint32_t>(damaged, 32, 0xffffffff);
  EXPECT_TRUE(absl::IsDataLoss(DecodeDriftReference(damaged).status()));
}

TEST(DriftReferenceTest, AKindOfScoreThatIsNotKnownYetIsUnimplemented) {
  DriftReference reference = Made();
  reference.scores.functions.back().kind = static_cast<ScoreKind>(5);
  EXPECT_THAT(DecodeDriftReference(EncodeDriftReference(reference)).status(),
              IsError(StatusCode::kUnimplemented, "FORMAT_UNKNOWN"));
}

TEST(DriftReferenceTest, AReferenceOfAnotherPlanIsRefused) {
  const DriftReference reference = Made();
  EXPECT_TRUE(
      CheckReferenceFits(reference, MakePlan({.columns = 3, .feature_count = 5}), false).ok());
  EXPECT_TRUE(absl::IsDataLoss(
      CheckReferenceFits(reference, MakePlan({.columns = 3, .feature_count = 6}), false)));
  EXPECT_TRUE(absl::IsDataLoss(
      CheckReferenceFits(reference, MakePlan({.columns = 4, .feature_count = 5}), false)));
  DriftReference of_residuals = Made();
  of_residuals.scores.functions.front() = {ScoreKind::kResidualShare, 0};
  EXPECT_TRUE(absl::IsDataLoss(
      CheckReferenceFits(of_residuals, MakePlan({.columns = 3, .feature_count = 5}), false)));
}

TEST(DriftReferenceTest, EdgesCutValuesIntoEqualBinsAndAreNoValues) {
  std::vector<double> values;
  RandomCursor random(RandomStream(1, StreamId::kLabRows));
  for (int i = 0; i < 5120; ++i) values.push_back(random.Normal());
  const std::vector<double> edges = EdgesOf(values);
  ASSERT_EQ(edges.size(), 255u);
  EXPECT_TRUE(std::is_sorted(edges.begin(), edges.end()));
  const ScoreHistogram histogram = HistogramOf(edges, values);
  for (const uint16_t count : histogram.counts) EXPECT_EQ(count, 20);
  for (const double edge : edges) {
    EXPECT_EQ(std::count(values.begin(), values.end(), edge), 0);
  }
}

// A value that many rows share has a bin of its own.
TEST(DriftReferenceTest, EqualValuesShareABin) {
  std::vector<double> values(300, 0.0);
  values.insert(values.end(), 100, 1.0);
  values.insert(values.end(), 112, 7.0);
  EXPECT_EQ(EdgesOf(values), (std::vector<double>{0.5, 4}));
  EXPECT_TRUE(EdgesOf(std::vector<double>(512, 3.0)).empty());
  const ScoreHistogram histogram = HistogramOf({0.5, 4}, values);
  EXPECT_EQ(histogram.counts, (std::vector<uint16_t>{300, 100, 112}));
  EXPECT_EQ(histogram.BinOf(0.5), 1);
  EXPECT_EQ(histogram.BinOf(std::numeric_limits<double>::lowest()), 0);
  EXPECT_EQ(histogram.BinOf(std::numeric_limits<double>::max()), 2);
}

TEST(DriftReferenceTest, RangesAreRoundedOutwards) {
  for (const double x : {0.1, -0.1, 1.0, 0.0, 1e-300, -1e-300, 1e300, -1e300, 16777217.0}) {
    EXPECT_TRUE(RoundedDown(x) <= x || x < -3.4e38) << x;
    EXPECT_TRUE(RoundedUp(x) >= x || x > 3.4e38) << x;
    EXPECT_TRUE(std::isfinite(RoundedDown(x)) && std::isfinite(RoundedUp(x)));
  }
  EXPECT_EQ(RoundedDown(0.5), 0.5f);
  EXPECT_EQ(RoundedUp(0.5), 0.5f);
}

// Features with one long axis: the first direction is that axis, and directions are orthonormal.
TEST(DriftReferenceTest, DirectionsArePrincipal) {
  UseOneBlasThread();
  Matrix<double> features = NormalRows({.rows = 500, .cols = 6, .seed = 3});
  const double axis[] = {0.6, 0, 0.8, 0, 0, 0};
  for (int64_t i = 0; i < features.rows(); ++i) {
    const double along = 8 * (features(i, 0) + features(i, 3));
    for (int64_t j = 0; j < 6; ++j) features(i, j) += 2 + along * axis[j];
  }
  const Matrix<double> held_out = NormalRows({.rows = 100, .cols = 6, .seed = 4});
  const DriftReference reference =
      *MakeDriftReference({.choosing = {WireRows(features), WireRows(features)},
                           .held_out = {WireRows(held_out), WireRows(held_out)}});
  const Matrix<float>& directions = reference.scores.directions;
  ASSERT_EQ(directions.rows(), 6);
  double cosine = 0;
  for (int64_t j = 0; j < 6; ++j) cosine += axis[j] * directions(0, j);
  EXPECT_GT(std::abs(cosine), 0.99);
  for (int64_t a = 0; a < 6; ++a) {
    for (int64_t b = 0; b <= a; ++b) {
      double product = 0;
      for (int64_t j = 0; j < 6; ++j) product += double{directions(a, j)} * directions(b, j);
      EXPECT_NEAR(product, a == b ? 1 : 0, 1e-5);
    }
  }
  // ‖F‖² and the directions: no columns were asked for.
  EXPECT_EQ(reference.scores.count(), 7);
}

TEST(DriftReferenceTest, ColumnsComeByTheShareOfTheirRangeThatTheyVaryByAndConstantOnesNot) {
  UseOneBlasThread();
  const int64_t columns = 200;
  const auto make = [&](uint64_t seed, int64_t rows) {
    Matrix<double> x = NormalRows({.rows = rows, .cols = columns, .seed = seed});
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) x(i, j) = j == 7 ? 5 : x(i, j) * std::pow(1.2, j % 50);
    }
    return x;
  };
  const Matrix<double> choosing = make(1, 512);
  const Matrix<double> rows = make(2, 100);
  const DriftReference reference =
      *MakeDriftReference({.choosing = {WireRows(choosing), WireRows(choosing)},
                           .held_out = {WireRows(rows), WireRows(rows)},
                           .has_columns = true});
  EXPECT_EQ(reference.scores.count(), kMaxScores);
  std::vector<double> variances;
  for (const ScoreFunction& function : reference.scores.functions) {
    if (function.kind != ScoreKind::kColumn) continue;
    EXPECT_NE(function.index, 7);
    double sum = 0, squares = 0, low = choosing(0, function.index), high = low;
    for (int64_t i = 0; i < choosing.rows(); ++i) {
      low = std::min(low, choosing(i, function.index));
      high = std::max(high, choosing(i, function.index));
      sum += choosing(i, function.index);
      squares += choosing(i, function.index) * choosing(i, function.index);
    }
    variances.push_back((squares - sum * sum / 512) / (high - low) / (high - low));
  }
  EXPECT_EQ(variances.size(), 128u - 1 - 8);
  EXPECT_TRUE(std::is_sorted(variances.rbegin(), variances.rend()));
}

// Mean and scatter against their definitions.
TEST(DriftReferenceTest, MomentsOfFeaturesAreThoseOfTheHeldOutRows) {
  UseOneBlasThread();
  const Matrix<double> choosing = NormalRows({.rows = 200, .cols = 4, .seed = 1});
  const Matrix<double> held_out = UniformRows({.rows = 100, .cols = 4, .seed = 2});
  const DriftReference reference =
      *MakeDriftReference({.choosing = {WireRows(choosing), WireRows(choosing)},
                           .held_out = {WireRows(held_out), WireRows(held_out)}});
  // Σ over pairs ‖x − y‖² = 2n·Σ‖x − mean‖².
  double pairs = 0;
  for (int64_t i = 0; i < 100; ++i) {
    for (int64_t k = 0; k < 100; ++k) {
      for (int64_t j = 0; j < 4; ++j) pairs += std::pow(held_out(i, j) - held_out(k, j), 2);
    }
  }
  EXPECT_NEAR(reference.scatter, pairs / (2 * 100 * 99), 1e-12);
  for (int64_t j = 0; j < 4; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < 100; ++i) sum += held_out(i, j);
    EXPECT_NEAR(reference.mean[j], sum / 100, 1e-14);
  }
}

}  // namespace
}  // namespace phimap::testing
