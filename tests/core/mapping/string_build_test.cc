// Tests mappings of text and bytes, from stream to features.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/engine/engine.h"
#include "core/kernel/kernel_block.h"
#include "core/linalg/blas.h"
#include "core/mapping/sample/stream_sample.h"
#include "core/plan/artifact.h"
#include "core/plan/residual.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_linalg.h"

namespace phimap::testing {
namespace {

// Words of one to six syllables.
struct Texts {
  explicit Texts(int64_t count, uint64_t seed = 3) {
    const char* const syllables[] = {"ka", "lo", "mi", "ter", "son", "a", "ü"};
    const RandomStream random(seed, StreamId::kSelfCheck);
    uint64_t draw = 0;
    for (int64_t i = 0; i < count; ++i) {
      std::string text;
      const uint64_t words = 1 + random.UniformBelow(draw++, 6);
      for (uint64_t w = 0; w < words; ++w) {
        if (w > 0) text += " ";
        for (uint64_t s = 0; s <= random.UniformBelow(draw, 3); ++s) {
          text += syllables[random.UniformBelow(draw++, 7)];
        }
        ++draw;
      }
      values.push_back(text);
    }
    for (const std::string& value : values) {
      places.push_back(&value);
      bytes += static_cast<int64_t>(value.size());
    }
  }
  StringsView view(ExampleKind kind = ExampleKind::kText) const {
    return {kind, places.data(), static_cast<int64_t>(values.size()), bytes};
  }
  std::vector<std::string> values;
  std::vector<const std::string*> places;
  int64_t bytes = 0;
};

Matrix<double> KernelOf(const std::string& text, const std::vector<std::string>& strings) {
  const auto table = std::make_shared<const std::vector<std::string>>(strings);
  const KernelProgram program = KernelProgram::Compile(KernelExpression::Parse(text)->Over(table));
  const auto n = static_cast<int64_t>(strings.size());
  Matrix<double> places(n, 1);
  for (int64_t i = 0; i < n; ++i) places(i, 0) = static_cast<double>(i);
  const std::vector<double> norms = SquaredNorms(places.view());
  Matrix<double> out(n, n);
  KernelBlock(program, places.view(), norms, places.view(), norms, out.view());
  return out;
}

template <typename T>
Matrix<T> Features(const Engine& engine, const StringsView& strings) {
  Matrix<T> y(strings.rows, engine.output_columns());
  TransformPart part{.rows = strings, .features = y.data(), .status = absl::OkStatus()};
  EngineScratch scratch;
  engine.Transform(absl::MakeSpan(&part, 1), scratch);
  EXPECT_TRUE(part.status.ok()) << part.status;
  return y;
}

// The components span the counts of all n-grams that occur, relative to the mean of these counts.
TEST(StringBuildTest, CentredKernelPcaIsMeasuredAgainstTheCentredKernel) {
  const Texts texts(400);
  const BuiltVersion built =
      Build(SpecOf("kpca(landmarks=60, dimensions=16)", "spectrum(n=1, unit=character)"),
            texts.view())
          .value();
  ASSERT_TRUE(built.certificate.kernel_error.has_value());
  const MeasuredError& error = *built.certificate.kernel_error;
  EXPECT_LT(error.max, 1e-4 * error.scale);
  EXPECT_GT(error.scale, 1);
}

TEST(StringBuildTest, EveryMappingOfLandmarksTakesText) {
  const Texts texts(400);
  for (const char* mapping :
       {"f1(landmarks=30)", "f2(landmarks=30)", "f2(landmarks=30, policy=rpcholesky)",
        "f2(landmarks=30, policy=given)", "f3(landmarks=30, dimensions=10)",
        "kpca(landmarks=30, dimensions=5)", "kpca(landmarks=30, dimensions=5, centred=true)"}) {
    for (const char* kernel : {"normalize(spectrum(n=3))", "exp(jaccard(n=2))",
                               "0.5*jaccard(n=1, unit=word) + jaccard(n=3, unit=byte)"}) {
      SCOPED_TRACE(absl::StrCat(mapping, " of ", kernel));
      const BuiltVersion built = Build(SpecOf(mapping, kernel), texts.view()).value();
      EXPECT_EQ(Build(SpecOf(mapping, kernel), texts.view(), 7)->bytes, built.bytes);
      EXPECT_EQ(built.input_columns, 0);
      for (const std::string& warning : built.certificate.warnings) {
        EXPECT_THAT(warning, Not(HasSubstr("residuals"))) << warning;
      }
      EXPECT_EQ(built.certificate.stream_rows, 400);
      const Artifact artifact = DecodeArtifact(built.bytes).value();
      const auto again = EncodeArtifact(artifact);
      EXPECT_EQ(*again, built.bytes);
      const auto engine = *Engine::Load(artifact.plan);
      const Matrix<float> all = Features<float>(*engine, texts.view());
      // Single rows, from the first tile and beyond, have the same bits alone as among all rows.
      for (const int64_t i : {0, 47, 399}) {
        const Matrix<float> one = Features<float>(*engine, texts.view().Slice(i, 1));
        EXPECT_TRUE(SameBits(one.data(), all.row(i), one.size()));
      }
    }
  }
}

// F2 is the projection onto the landmarks' span. If all examples are landmarks, its inner products
// are their kernel values.
TEST(StringBuildTest, FeaturesOfF2HaveTheKernelOfTheirLandmarks) {
  const Texts texts(41);
  const char* const kernel = "normalize(spectrum(n=1) + spectrum(n=2))";
  const BuildSpec spec = SpecOf("f2(landmarks=40, policy=given, serving_type=float64)", kernel);
  const BuiltVersion built = Build(spec, texts.view()).value();
  const absl::StatusOr<Artifact> artifact = DecodeArtifact(built.bytes);
  const auto engine = *Engine::Load(artifact->plan);
  const Matrix<double> f = Features<double>(*engine, texts.view());
  const Matrix<double> k = KernelOf(kernel, texts.values);
  const Matrix<double> gram = NaiveGram(f, f);
  for (int64_t i = 0; i < 40; ++i) {
    for (int64_t j = 0; j < 40; ++j) EXPECT_NEAR(gram(i, j), k(i, j), 1e-6) << i << " " << j;
  }
  // ρ, with its allowance, bounds the error of every pair.
  const std::optional<Residual> residual = Residual::Of(artifact->plan, artifact->provenance);
  ASSERT_TRUE(residual.has_value());
  std::vector<double> rho(41);
  double closest = 0;
  std::vector<double> allowances(41);
  residual->Compute(texts.view(), f.data(), rho.data(), allowances.data());
  for (size_t i = 0; i < rho.size(); ++i) rho[i] += allowances[i];
  for (int64_t i = 0; i < 41; ++i) {
    for (int64_t j = 0; j < 41; ++j) {
      double product = 0;
      for (int64_t c = 0; c < f.cols(); ++c) product += f(i, c) * f(j, c);
      const double error = std::abs(k(i, j) - product);
      const double bound = std::sqrt(rho[i] * rho[j]);
      EXPECT_LE(error, bound + 1e-12);
      closest = std::max(closest, error / bound);
    }
  }
  EXPECT_GT(closest, 0.5);
}

TEST(StringBuildTest, F1IsTheKernelWithTheLandmarks) {
  const Texts texts(31);
  const BuildSpec spec = SpecOf("f1(landmarks=30, policy=given)", "spectrum(n=2, unit=byte)");
  const BuiltVersion built = Build(spec, texts.view(ExampleKind::kBytes)).value();
  const auto engine = *Engine::Load(DecodeArtifact(built.bytes)->plan);
  EXPECT_TRUE(engine->CheckTakes(texts.view(ExampleKind::kBytes)).ok());
  EXPECT_TRUE(engine->CheckTakes(texts.view()).ok());
  const Matrix<float> f = Features<float>(*engine, texts.view(ExampleKind::kBytes));
  const Matrix<double> k = KernelOf("spectrum(n=2, unit=byte)", texts.values);
  for (int64_t i = 0; i < 31; ++i) {
    for (int64_t j = 0; j < 30; ++j) EXPECT_EQ(f(i, j), k(i, j));
  }
}

TEST(StringBuildTest, KindsThatDoNotSuitTheKernelAreRefused) {
  const Texts texts(60);
  const auto reason = [](const absl::StatusOr<BuiltVersion>& built) {
    EXPECT_FALSE(built.ok());
    return ReasonOf(built.status());
  };
  const BuildSpec text = SpecOf("f2(landmarks=5)", "jaccard(n=2)");
  EXPECT_EQ(reason(Build(text, texts.view(ExampleKind::kBytes))), "KERNEL_NOT_APPLICABLE");
  EXPECT_EQ(reason(Build(SpecOf("f2(landmarks=5)", "linear()"), texts.view())),
            "KERNEL_NOT_APPLICABLE");
  EXPECT_EQ(reason(Build(text, Matrix<double>(60, 3))), "KERNEL_NOT_APPLICABLE");
  BuildSpec standardized = text;
  standardized.standardize = true;
  EXPECT_EQ(FieldOf(standardized.Validate()), "standardize");
  const BuiltVersion built = Build(text, texts.view()).value();
  const auto engine = *Engine::Load(DecodeArtifact(built.bytes)->plan);
  EXPECT_THAT(std::string(engine->CheckTakes(texts.view(ExampleKind::kBytes)).message()),
              HasSubstr("maps text, got bytes"));
  EXPECT_EQ(ReasonOf(engine->CheckTakes(RowsView{})), "EXAMPLE_KIND_MISMATCH");
}

}  // namespace
}  // namespace phimap::testing
