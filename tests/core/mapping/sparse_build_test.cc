// Tests that a build from sparse rows never shifts them. Wherever a build from the dense rows does
// not shift them either, both builds give the same version.
#include <cmath>
#include <string>
#include <vector>

#include "core/mapping/sample/stream_sample.h"
#include "core/plan/artifact.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"
#include "tests/support/sparse_rows.h"

namespace phimap::testing {
namespace {

Matrix<double> MostlyZeros(int64_t rows, int64_t columns) {
  return Thinned(UniformRows({.rows = rows, .cols = columns, .seed = 4}), 7);
}

TEST(SparseBuildTest, WithoutAShiftTheBytesAreThoseOfTheDenseRows) {
  const Matrix<double> dense = MostlyZeros(900, 30);
  const auto sparse = SparseOf(dense);
  const char* const kPoly = "poly(degree=2, coef0=1)";
  const BuildSpec specs[] = {
      SpecOf("f1(landmarks=40)", "sigmoid(gamma=scale)"),
      SpecOf("f2(landmarks=40)", "linear()"),
      SpecOf("f2(landmarks=40, pool_rows=200)", kPoly),
      SpecOf("f2(landmarks=40, policy=rpcholesky)", kPoly),
      SpecOf("f2(landmarks=40, policy=given)", "normalize(poly(degree=2, coef0=1, gamma=median))"),
      SpecOf("f2(landmarks=40, input_dimensions=12)", kPoly),
      SpecOf("f3(landmarks=40, dimensions=12)", kPoly),
      SpecOf("kpca(landmarks=40, dimensions=5)", kPoly),
      SpecOf("random_projection(dimensions=12)", "linear()"),
      SpecOf("multiclass(classes=3, dimensions=4)", "linear()"),
      SpecOf("polynomial(dimensions=1000)", kPoly),
  };
  for (const BuildSpec& spec : specs) {
    const absl::StatusOr<BuiltVersion> expected = Build(spec, WireRows(dense));
    ASSERT_TRUE(expected.ok()) << spec.ToText() << expected.status();
    for (const int64_t block : {0, 1, 77}) {
      const absl::StatusOr<BuiltVersion> built = Build(spec, sparse.view(), block);
      ASSERT_TRUE(built.ok()) << spec.ToText() << built.status();
      EXPECT_EQ(built->bytes, expected->bytes) << spec.ToText();
    }
  }
}

TEST(SparseBuildTest, StandardizedColumnsAreScaledAndKeepTheirMeans) {
  Matrix<double> dense = MostlyZeros(600, 8);
  for (int64_t i = 0; i < 600; ++i) {
    for (int64_t j = 0; j < 8; ++j) dense(i, j) *= static_cast<double>(j + 1);
  }
  const auto sparse = SparseOf(dense);
  for (const char* mapping : {"f2(landmarks=50)", "fourier(dimensions=64)"}) {
    const BuiltVersion built =
        Build(SpecOf(mapping, "rbf(gamma=scale)", /*standardize=*/true), sparse.view()).value();
    const Artifact artifact = DecodeArtifact(built.bytes).value();
    EXPECT_TRUE(artifact.plan.input.shift.empty());
    ASSERT_EQ(artifact.plan.input.scale.size(), 8u);
    double sum = 0, squares = 0;  // sums over the scaled entries
    for (int64_t j = 0; j < 8; ++j) {
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < 600; ++i) mean += dense(i, j) / 600;
      for (int64_t i = 0; i < 600; ++i) variance += std::pow(dense(i, j) - mean, 2) / 600;
      EXPECT_NEAR(artifact.plan.input.scale[j], 1 / std::sqrt(variance), 1e-10);
      sum += mean / std::sqrt(variance);
      squares += 1 + mean * mean / variance;
    }
    const double variance = squares / 8 - sum / 8 * sum / 8;
    const KernelExpression kernel =
        KernelExpression::Parse(artifact.provenance.kernel_text).value();
    EXPECT_NEAR(kernel.root().values.Number("gamma"), 1 / (8 * variance), 1e-10);
    EXPECT_LT(built.certificate.kernel_error->mean, 0.1);
  }
}

// A version maps dense and sparse rows, whichever form it was built from.
TEST(SparseBuildTest, VersionsOfDenseRowsMapSparseOnesToTheSameBits) {
  const Matrix<double> dense = MostlyZeros(300, 40);
  const auto sparse = SparseOf(dense);
  for (const bool standardize : {false, true}) {
    const BuiltVersion version = MustBuild(SpecOf("f2(landmarks=50)", "rbf()", standardize), dense);
    const Matrix<double> expected = FeaturesFrom(version, dense);
    const auto engine = *Engine::Load(DecodeArtifact(version.bytes)->plan);
    Matrix<float> y(300, engine->output_columns());
    TransformPart part{.rows = sparse.view(), .features = y.data(), .status = absl::OkStatus()};
    EngineScratch scratch;
    engine->Transform(absl::MakeSpan(&part, 1), scratch);
    const Matrix<double> wide = Converted<double, float>(y.view());
    EXPECT_TRUE(SameBits(wide, expected));
  }
}

TEST(SparseBuildTest, BlockOfAnotherKindOrWidthIsRefusedAndNothingOfItTaken) {
  const Matrix<double> dense = MostlyZeros(10, 6);
  const Matrix<double> narrow = MostlyZeros(10, 5);
  const auto sparse = SparseOf(dense);
  StreamSample sample(SpecOf("f2(landmarks=5)", "rbf()"), 6, ExampleKind::kSparse);
  ASSERT_TRUE(sample.Add(sparse.view()).ok());
  EXPECT_EQ(DetailOf(sample.Add(WireRows(dense)))->reason, "EXAMPLE_KINDS_MIXED");
  EXPECT_EQ(DetailOf(sample.Add(SparseOf(narrow).view()))->field, "examples.sparse.columns");
  auto damaged = sparse;
  damaged.indices[3] = 6;
  EXPECT_EQ(DetailOf(sample.Add(damaged.view()))->field, "examples.sparse.column_indices[3]");
  EXPECT_EQ(sample.rows(), 10);
}

}  // namespace
}  // namespace phimap::testing
