// The drift references that builds make.
#include "core/mapping/build/drift_step.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/plan/artifact.h"
#include "core/plan/residual.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

Artifact ArtifactOf(const BuiltVersion& version) { return *DecodeArtifact(version.bytes); }

DriftReference ReferenceOf(const BuiltVersion& version) {
  const Artifact artifact = ArtifactOf(version);
  DriftReference reference = DecodeDriftReference(artifact.drift_reference).value();
  EXPECT_TRUE(CheckReferenceFits(reference, artifact.plan,
                                 Residual::Of(artifact.plan, artifact.provenance).has_value())
                  .ok());
  return reference;
}

int64_t CountOf(const DriftReference& reference, ScoreKind kind) {
  return std::count_if(reference.scores.functions.begin(), reference.scores.functions.end(),
                       [kind](const ScoreFunction& function) { return function.kind == kind; });
}

TEST(DriftStepTest, EveryMappingHasAReference) {
  const Matrix<double> rows = NormalRows({.rows = 3000, .cols = 6});
  const struct {
    const char* mapping;
    const char* kernel;
    bool has_residual;
  } cases[] = {{"f1(landmarks=40)", "rbf(gamma=scale)", false},
               {"f2(landmarks=40)", "rbf(gamma=scale)", true},
               {"f2(landmarks=40, serving_type=float64)", "rbf(gamma=scale)", true},
               {"f3(landmarks=40, dimensions=20)", "rbf(gamma=scale)", false},
               {"kpca(landmarks=40, dimensions=10)", "rbf(gamma=scale)", false},
               {"fourier(dimensions=40)", "rbf(gamma=scale)", false},
               {"random_projection(dimensions=20)", "linear()", false},
               {"polynomial(dimensions=200)", "poly(degree=2, gamma=1, coef0=1)", false}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.mapping);
    const BuiltVersion version = MustBuild(SpecOf(c.mapping, c.kernel), rows);
    EXPECT_EQ(ArtifactFormatOf(version.bytes), 3u);
    const DriftReference reference = ReferenceOf(version);
    // Mappings without landmarks keep no pool, so a quarter of the 300 held-out rows chooses.
    const bool has_pool = SpecOf(c.mapping, c.kernel).mapping.has_landmarks();
    EXPECT_EQ(reference.rows, has_pool ? 300 : 225);
    EXPECT_EQ(reference.stream_rows, 3000);
    EXPECT_EQ(CountOf(reference, ScoreKind::kResidualShare), c.has_residual ? 1 : 0);
    EXPECT_EQ(CountOf(reference, ScoreKind::kSquaredNorm), 1);
    EXPECT_GE(CountOf(reference, ScoreKind::kDirection), 5);
    EXPECT_EQ(CountOf(reference, ScoreKind::kColumn), 6);
    // Every number of the stream is within its column's range.
    for (int64_t i = 0; i < rows.rows(); ++i) {
      for (int64_t j = 0; j < 6; ++j) {
        ASSERT_GE(rows(i, j), reference.low[j]);
        ASSERT_LE(rows(i, j), reference.high[j]);
      }
    }
  }
}

// No row is stored: no edge of a column is a number of the stream.
TEST(DriftStepTest, EdgesAreNoNumbersOfTheStream) {
  const Matrix<double> rows = NormalRows({.rows = 3000, .cols = 6});
  const DriftReference reference =
      ReferenceOf(MustBuild(SpecOf("f2(landmarks=40)", "rbf(gamma=scale)"), rows));
  std::vector<double> numbers(rows.data(), rows.data() + rows.size());
  std::sort(numbers.begin(), numbers.end());
  for (size_t s = 0; s < reference.histograms.size(); ++s) {
    if (reference.scores.functions[s].kind != ScoreKind::kColumn) continue;
    EXPECT_GT(reference.histograms[s].edges.size(), 200u);
    for (const double edge : reference.histograms[s].edges) {
      EXPECT_FALSE(std::binary_search(numbers.begin(), numbers.end(), edge));
    }
  }
}

TEST(DriftStepTest, FewHeldOutRowsGiveNoReferenceAndTheBytesOfBefore) {
  const Matrix<double> few = NormalRows({.rows = 990, .cols = 3});
  const BuiltVersion without = MustBuild(SpecOf("f2(landmarks=20)", "rbf(gamma=scale)"), few);
  EXPECT_TRUE(ArtifactOf(without).drift_reference.empty());
  EXPECT_EQ(ArtifactFormatOf(without.bytes), 1u);
  const Matrix<double> enough = NormalRows({.rows = 1000, .cols = 3});
  const BuiltVersion with = MustBuild(SpecOf("f2(landmarks=20)", "rbf(gamma=scale)"), enough);
  EXPECT_EQ(ReferenceOf(with).rows, 100);
}

// If nearly all rows of the pool are landmarks, whose residual is 0, a quarter of the held-out rows
// chooses the scores, and is not in the histograms.
TEST(DriftStepTest, ScoresAreNotChosenFromLandmarks) {
  const Matrix<double> rows = NormalRows({.rows = 2000, .cols = 3});
  const DriftReference reference =
      ReferenceOf(MustBuild(SpecOf("f2(landmarks=300, pool_rows=300)", "rbf(gamma=scale)"), rows));
  EXPECT_EQ(reference.rows, 150);
  ASSERT_EQ(reference.scores.functions[0].kind, ScoreKind::kResidualShare);
  const std::vector<uint16_t>& counts = reference.histograms[0].counts;
  // The bins of the residual are about equally full: the largest has far fewer than all rows.
  EXPECT_LT(*std::max_element(counts.begin(), counts.end()), 40);
}

// Landmarks are drawn from all of the pool. Of those rows that are none, no ρ is near 0.
TEST(DriftStepTest, ScoresAreChosenFromRowsBesideTheLandmarks) {
  const Matrix<double> rows = NormalRows({.rows = 2000, .cols = 3});
  const DriftReference reference = ReferenceOf(MustBuild(
      SpecOf("f2(landmarks=150, pool_rows=300)", "matern(nu=0.5, length_scale=0.5)"), rows));
  EXPECT_EQ(reference.rows, 200);
  ASSERT_EQ(reference.scores.functions[0].kind, ScoreKind::kResidualShare);
  EXPECT_GT(reference.histograms[0].edges.size(), 140u);
  EXPECT_GT(reference.histograms[0].edges.front(), 0.01);
}

TEST(DriftStepTest, EqualStreamsGiveEqualReferences) {
  const Matrix<double> rows = NormalRows({.rows = 1500, .cols = 5});
  for (const char* mapping : {"f2(landmarks=50)", "fourier(dimensions=60)"}) {
    const BuildSpec spec = SpecOf(mapping, "rbf(gamma=scale)");
    EXPECT_EQ(MustBuild(spec, rows).bytes, MustBuild(spec, rows).bytes);
  }
}

// A served row gets the same score as in the build, whatever type its numbers come in: the
// histogram that served held-out rows would make is the reference's own.
TEST(DriftStepTest, AServedRowHasTheScoreThatItHadInTheBuild) {
  // Numbers that float32 holds, so that the rows can be served in either type.
  const Matrix<double> rows =
      Converted<double, float>(UniformFloatRows({.rows = 1200, .cols = 4}).view());
  const BuiltVersion version = MustBuild(SpecOf("f2(landmarks=30)", "rbf(gamma=scale)"), rows);
  const Artifact artifact = ArtifactOf(version);
  const DriftReference reference = ReferenceOf(version);
  const auto residual = Residual::Of(artifact.plan, artifact.provenance);
  const auto engine = *Engine::Load(artifact.plan);
  const Matrix<float> narrow = Converted<float, double>(rows.view());
  Matrix<double> wide_scores(rows.rows(), reference.scores.count());
  Matrix<double> narrow_scores(rows.rows(), reference.scores.count());
  ComputeScores(reference.scores, WireRows(rows),
                WireRows(MustTransform<float>(*engine, WireRows(rows))), &*residual,
                wide_scores.view());
  ComputeScores(reference.scores, WireRows(narrow),
                WireRows(MustTransform<float>(*engine, WireRows(narrow))), &*residual,
                narrow_scores.view());
  for (int64_t i = 0; i < wide_scores.size(); ++i) {
    ASSERT_EQ(wide_scores.data()[i], narrow_scores.data()[i]);
  }
  // 120 of the 1,200 rows are held out, so no bin has more held-out rows than rows of the stream.
  for (int64_t s = 0; s < reference.scores.count(); ++s) {
    std::vector<int> all(reference.histograms[s].counts.size());
    for (int64_t i = 0; i < rows.rows(); ++i) {
      ++all[reference.histograms[s].BinOf(wide_scores(i, s))];
    }
    for (size_t b = 0; b < all.size(); ++b) EXPECT_LE(reference.histograms[s].counts[b], all[b]);
  }
}

}  // namespace
}  // namespace phimap::testing
