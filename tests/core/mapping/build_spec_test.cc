#include "core/mapping/spec/build_spec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_program.h"
#include "core/mapping/fourier/fourier_mapping.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"

namespace phimap::testing {
namespace {

TEST(MappingSpecTest, CanonicalTextNamesWhatAppliesAndReadsBackEqual) {
  struct Case {
    const char* text;
    const char* canonical;
  };
  const Case kCases[] = {
      {"f2(landmarks=500)", "f2(landmarks=500, policy=uniform)"},
      {" f1 ( landmarks = 1 ) ", "f1(landmarks=1, policy=uniform)"},
      {"f3(dimensions=64,landmarks=2e3)",
       "f3(landmarks=2000, dimensions=64, projection=gaussian, policy=uniform)"},
      {"f2(landmarks=8192, pool_rows=16777216, serving_type=float64)",
       "f2(landmarks=8192, policy=uniform, pool_rows=16777216, serving_type=float64)"},
      {"f3(landmarks=9, dimensions=4, projection=sign)",
       "f3(landmarks=9, dimensions=4, projection=sign, policy=uniform)"},
      {"random_projection(dimensions=65536)",
       "random_projection(dimensions=65536, projection=gaussian)"},
      {"random_projection(projection=sparse, dimensions=3, serving_type=float64)",
       "random_projection(dimensions=3, projection=sparse, serving_type=float64)"},
      {"fourier(dimensions=512)", "fourier(dimensions=512, form=sincos, orthogonal=false)"},
      {"fourier(form=phase, orthogonal=true, dimensions=7, pool_rows=9)",
       "fourier(dimensions=7, form=phase, orthogonal=true, pool_rows=9)"},
      {"kpca(landmarks=9, dimensions=4)",
       "kpca(landmarks=9, dimensions=4, centred=true, policy=uniform)"},
      {"kpca(centred=false, dimensions=9, landmarks=9, pool_rows=20)",
       "kpca(landmarks=9, dimensions=9, centred=false, policy=uniform, pool_rows=20)"},
      // Release 0.1 took two names for one family.
      {"kernel_pca(landmarks=9, dimensions=4)",
       "kpca(landmarks=9, dimensions=4, centred=true, policy=uniform)"},
      {"f2(serving_type=float32, policy=uniform, landmarks=5)",
       "f2(landmarks=5, policy=uniform, serving_type=float32)"},
  };
  for (const Case& c : kCases) {
    const absl::StatusOr<MappingSpec> spec = MappingSpec::Parse(c.text);
    ASSERT_TRUE(spec.ok()) << c.text << ": " << spec.status();
    EXPECT_EQ(spec->ToText(), c.canonical);
    EXPECT_EQ(MappingSpec::Parse(spec->ToText())->ToText(), c.canonical);
  }
  EXPECT_FALSE(MappingSpec::Parse("f2(landmarks=5)")->serving_type.has_value());
  EXPECT_EQ(MappingSpec::Parse("f3(landmarks=9, dimensions=4)")->dimensions, 4);
}

TEST(MappingSpecTest, MalformedTextNamesTheColumn) {
  struct Case {
    std::string text;
    int column;
    std::string says;
  };
  const Case kCases[] = {
      {"", 1, absl::StrCat("expected a family: ", ListOfFamilies(), ", got the end")},
      {"f2", 1, "f2 needs the parameter 'landmarks'"},
      {"f2()", 1, "f2 needs the parameter 'landmarks', an integer from 1 to 8192"},
      {"f4(landmarks=5)", 1, "unknown family 'f4'; expected f1, f2, f3, "},
      {"  F2(landmarks=5)", 3, "unknown family 'F2'"},
      {"f2(landmarks=0)", 14, "got 0"},
      {"f2(landmarks=8193)", 14, "got 8193"},
      {"f2(landmarks=-5)", 14, "got -5"},
      {"f2(landmarks=5.5)", 14, "got 5.5"},
      {"f2(landmarks=many)", 14, "got 'many'"},
      {"f2(landmarks=best(residual=.1))", 14, "got the call best(…)"},
      {"f3(landmarks=9, dimensions=best(residual=.1))", 28, "got the call best(…)"},
      {"f2(landmarks=1e999)", 14, "out of the range"},
      {"f2(landmarks=5) x", 17, "expected the end, got 'x'"},
      {"f2(landmarks=5))", 16, "expected the end"},
      {"f2(landmarks=5", 15, "expected ',' or ')'"},
      {"f2(landmarks=5, landmarks=6)", 17, "given twice"},
      {"f2(landmarks=5, dimensions=3)", 17, "f2 has no parameter 'dimensions'"},
      {"f1(landmarks=5, projection=gaussian)", 17, "f1 has no parameter 'projection'"},
      {"random_projection()", 1, "random_projection needs the parameter 'dimensions'"},
      {"random_projection(landmarks=5)", 19,
       "it has dimensions, projection, held_out_rows, serving_type"},
      {"fourier(landmarks=5)", 9,
       "it has dimensions, form, orthogonal, pool_rows, held_out_rows, serving_type"},
      {"fourier(dimensions=4, form=cosine)", 28, "form is one of phase, sincos; got 'cosine'"},
      {"fourier(dimensions=4, orthogonal=1)", 34, "orthogonal is one of false, true; got 1"},
      {"f3(landmarks=5)", 1, "f3 needs the parameter 'dimensions'"},
      {"f3(landmarks=5, dimensions=65537)", 28, "got 65537"},
      {"f3(landmarks=5, dimensions=3, projection=uniform)", 42, "got 'uniform'"},
      {"f2(landmarks=5, policy=random)", 24, "policy is one of uniform, rpcholesky, given"},
      {"f2(landmarks=5, policy=1)", 24, "got 1"},
      {"f2(landmarks=5, pool_rows=16777217)", 27, "got 16777217"},
      {"f2(landmarks=5, serving_type=float16)", 30, "one of float32, float64"},
      {"f2(landmarks=5, seed=3)", 17,
       "it has landmarks, input_dimensions, policy, pool_rows, held_out_rows, serving_type"},
      {"f2(landmarks\xc3=5)", 13, "byte 195"},
      {"f2(landmarks=5)" + std::string(4090, ' '), 4097, "at most 4096"},
  };
  for (const Case& c : kCases) {
    const absl::Status status = MappingSpec::Parse(c.text).status();
    EXPECT_THAT(status, IsError(StatusCode::kInvalidArgument, "EXPRESSION_INVALID")) << c.text;
    EXPECT_EQ(DetailOf(status)->metadata.at("column"), absl::StrCat(c.column)) << status;
    EXPECT_NE(status.message().find(c.says), std::string::npos) << c.text << ": " << status;
  }
}

TEST(MappingSpecTest, CombinationsNameTheirField) {
  struct Case {
    const char* text;
    StatusCode code;
    const char* field;
  };
  const Case kCases[] = {
      {"f3(landmarks=5, dimensions=6)", StatusCode::kInvalidArgument, "dimensions"},
      {"kpca(landmarks=5, dimensions=6)", StatusCode::kInvalidArgument, "dimensions"},
      {"f2(landmarks=5, pool_rows=4)", StatusCode::kInvalidArgument, "pool_rows"},
      {"f3(landmarks=5, dimensions=3, projection=sparse)", StatusCode::kInvalidArgument,
       "projection"},
      {"f3(landmarks=5, dimensions=3, projection=orthonormal)", StatusCode::kInvalidArgument,
       "projection"},
  };
  for (const Case& c : kCases) {
    EXPECT_THAT(MappingSpec::Parse(c.text).status(), IsError(c.code, _, c.field));
  }
  EXPECT_EQ(
      (MappingSpec{.kind = FindFamily("f2"), .landmarks = 5, .dimensions = 2}).Validate().code(),
      StatusCode::kInvalidArgument);
  EXPECT_FALSE((MappingSpec{.landmarks = 0}).Validate().ok());
  EXPECT_FALSE((MappingSpec{.landmarks = kMaxLandmarks + 1}).Validate().ok());
  EXPECT_FALSE((MappingSpec{.landmarks = 5, .pool_rows = -1}).Validate().ok());
}

TEST(BuildSpecTest, FieldsAreNamedAndIndefiniteKernelsAreForF1) {
  BuildSpec spec{.mapping = {.landmarks = 0}, .kernel = KernelExpression()};
  EXPECT_EQ(FieldOf(spec.Validate()), "landmarks");
  spec.mapping.landmarks = 5;
  EXPECT_TRUE(spec.Validate().ok());
  spec.kernel = MustParseKernel("rbf() + poly(degree=2, coef0=-1)");
  for (const Family* kind : {FindFamily("f2"), FindFamily("f3")}) {
    spec.mapping.kind = kind;
    spec.mapping.dimensions = kind == FindFamily("f3") ? 3 : 0;
    const absl::Status status = spec.Validate();
    EXPECT_THAT(status, IsError(StatusCode::kInvalidArgument, "KERNEL_NOT_POSITIVE_SEMIDEFINITE"));
    EXPECT_EQ(DetailOf(status)->metadata.at("column"), "9") << status;
  }
  spec.mapping.kind = FindFamily("f1");
  spec.mapping.dimensions = 0;
  EXPECT_TRUE(spec.Validate().ok());
}

TEST(MappingSpecTest, WhatDoesNotApplyIsRefusedByName) {
  const auto field = [](const MappingSpec& spec) { return FieldOf(spec.Validate()); };
  const Family* kind = FindFamily("random_projection");
  EXPECT_TRUE((MappingSpec{.kind = kind, .dimensions = 5}).Validate().ok());
  EXPECT_EQ(field({.kind = kind}), "dimensions");
  EXPECT_EQ(field({.kind = kind, .dimensions = kMaxDimensions + 1}), "dimensions");
  EXPECT_EQ(field({.kind = kind, .landmarks = 9, .dimensions = 5}), "landmarks");
  EXPECT_EQ(field({.kind = kind, .dimensions = 5, .pool_rows = 9}), "pool_rows");
  EXPECT_EQ(field({.landmarks = 9, .projection = ProjectionKind::kSign}), "projection");
  EXPECT_EQ(field({.landmarks = 9, .form = FourierForm::kPhase}), "form");
  EXPECT_EQ(field({.landmarks = 9, .centred = false}), "centred");
  EXPECT_EQ(field({.kind = kind, .dimensions = 5, .orthogonal = true}), "orthogonal");
}

TEST(MappingSpecTest, SinesAndCosinesComeInPairs) {
  const Family* kind = FindFamily("fourier");
  EXPECT_EQ(ReasonOf((MappingSpec{.kind = kind, .dimensions = 5}).Validate()), "DIMENSIONS_ODD");
  EXPECT_TRUE((MappingSpec{.kind = kind, .dimensions = 6}).Validate().ok());
  EXPECT_TRUE(
      (MappingSpec{.kind = kind, .dimensions = 5, .form = FourierForm::kPhase}).Validate().ok());
}

TEST(BuildSpecTest, FourierFeaturesAreOfAnRbfKernelOrALaplacianAndOrthogonalOnesOfTheFirst) {
  BuildSpec spec{.mapping = {.kind = FindFamily("fourier"), .dimensions = 6}};
  for (const char* kernel : {"rbf()", "rbf(gamma=scale)", "2*(3*rbf(gamma=median))", "laplacian()",
                             "2*laplacian(gamma=median)"}) {
    spec.kernel = MustParseKernel(kernel);
    spec.mapping.orthogonal = false;
    EXPECT_TRUE(spec.Validate().ok()) << kernel;
    spec.mapping.orthogonal = true;
    EXPECT_EQ(spec.Validate().ok(), FourierKernelOf(spec.kernel)->has_uniform_directions())
        << kernel;
  }
  spec.mapping.orthogonal = false;
  for (const char* kernel : {"linear()", "-1*rbf()", "0*rbf()", "rbf() + rbf()", "rbf()*rbf()",
                             "rbf()*laplacian()", "1e200*(1e200*rbf())", "1e-200*(1e-200*rbf())"}) {
    spec.kernel = MustParseKernel(kernel);
    EXPECT_EQ(ReasonOf(spec.Validate()), "KERNEL_NOT_APPLICABLE") << kernel;
    EXPECT_EQ(FieldOf(spec.Validate()), "kernel");
  }
}

TEST(BuildSpecTest, ARandomProjectionIsOfTheLinearKernel) {
  BuildSpec spec{.mapping = {.kind = FindFamily("random_projection"), .dimensions = 5}};
  for (const char* kernel : {"linear()", "2*(3*linear())"}) {
    spec.kernel = MustParseKernel(kernel);
    EXPECT_TRUE(spec.Validate().ok()) << kernel;
  }
  for (const char* kernel : {"rbf()", "-1*linear()", "0*linear()", "linear() + rbf()"}) {
    spec.kernel = MustParseKernel(kernel);
    EXPECT_EQ(ReasonOf(spec.Validate()), "KERNEL_NOT_APPLICABLE") << kernel;
    EXPECT_EQ(FieldOf(spec.Validate()), "kernel");
  }
}

TEST(BuildSpecTest, TextTellsSpecsApart) {
  const BuildSpec a{.mapping = {.landmarks = 5}, .kernel = KernelExpression(), .seed = 1};
  BuildSpec b = a;
  EXPECT_EQ(a.ToText(), b.ToText());
  b.seed = 2;
  EXPECT_NE(a.ToText(), b.ToText());
  b = a;
  b.standardize = true;
  EXPECT_NE(a.ToText(), b.ToText());
  b = a;
  b.kernel = MustParseKernel("rbf()");
  EXPECT_NE(a.ToText(), b.ToText());
  b = a;
  b.mapping.serving_type = FloatType::kFloat32;
  EXPECT_NE(a.ToText(), b.ToText());
}

// Runs both parsers on mutations of valid texts. A mutation must either be refused with an error
// that has a column, or give a result whose own text parses to the same text again.
TEST(ExpressionFuzzTest, MutatedTextsParseOrNameAColumnWithinTheText) {
  const std::string kSeeds[] = {
      "f3(landmarks=2000, dimensions=256, projection=gaussian, policy=uniform, pool_rows=40000)",
      "f2(landmarks=500, serving_type=float64)",
      "fourier(dimensions=512, form=phase, orthogonal=true)",
      "rbf(gamma=scale) + 0.1*poly(degree=2, gamma=0.5, coef0=1)",
      "2*(linear() + -3e-4*rbf(gamma=median))*poly(degree=64)*(linear()*linear())",
  };
  constexpr char kAlphabet[] = "()+*-=,. 0123456789eEglmnprstbfxyz\t_\0\xff\n";
  RandomCursor random(RandomStream(99, StreamId::kStartVectors));
  int parsed = 0;
  for (int iteration = 0; iteration < 100000; ++iteration) {
    std::string text = kSeeds[random.UniformBelow(5)];
    for (uint64_t e = 0; e <= random.UniformBelow(4); ++e) {
      const size_t at = random.UniformBelow(text.size() + 1);
      const char c = kAlphabet[random.UniformBelow(sizeof(kAlphabet) - 1)];
      switch (random.UniformBelow(4)) {
        case 0:
          text.insert(at, 1, c);
          break;
        case 1:
          text.erase(at, 1 + random.UniformBelow(4));
          break;
        case 2:
          text.insert(at, text.substr(at, random.UniformBelow(30)));
          break;
        default:
          if (at < text.size()) text[at] = c;
          break;
      }
    }
    const absl::StatusOr<KernelExpression> kernel = KernelExpression::Parse(text);
    const absl::StatusOr<MappingSpec> mapping = MappingSpec::Parse(text);
    if (kernel.ok()) {
      ++parsed;
      ASSERT_EQ(KernelExpression::Parse(kernel->ToText())->ToText(), kernel->ToText()) << text;
      const KernelExpression resolved = kernel->Resolved(1, 1);
      ASSERT_FALSE(KernelProgram::Compile(resolved).ops().empty());
    }
    if (mapping.ok()) {
      ++parsed;
      ASSERT_EQ(MappingSpec::Parse(mapping->ToText())->ToText(), mapping->ToText()) << text;
    }
    for (const absl::Status& status : {kernel.status(), mapping.status()}) {
      if (status.ok()) continue;
      const std::optional<ErrorDetail> detail = DetailOf(status);
      ASSERT_TRUE(detail.has_value()) << text << ": " << status;
      if (detail->reason != "EXPRESSION_INVALID") continue;
      const int column = std::stoi(detail->metadata.at("column"));
      ASSERT_TRUE(column >= 1 && column <= static_cast<int>(text.size()) + 1) << text << status;
    }
  }
  EXPECT_GT(parsed, 1000);
}

}  // namespace
}  // namespace phimap::testing
