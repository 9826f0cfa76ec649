// Tests the one-parameter multiclass map x ↦ (R_1 x, …, R_L x) of Shi and others 2012, Theorem 9.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/linalg/blas.h"
#include "core/mapping/projection/random_projection.h"
#include "core/status/error.h"
#include "core/theory/multiclass_bounds.h"
#include "core/theory/projection_bounds.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"
#include "tests/support/rare_failures.h"

namespace phimap::testing {
namespace {

// Returns block y of the features of row i.
const double* Block(const Matrix<double>& features, int64_t i, int64_t y, int64_t dimensions) {
  return features.row(i) + y * dimensions;
}

// The features of the classes are independent random projections, one block for each class. All
// blocks together are the product with one random matrix, which is scaled by the number of rows in
// one block.
TEST(MulticlassTest, BlocksAreTheRowsOfOneMatrixScaledToABlock) {
  const Matrix<double> x = NormalRows({.rows = 40, .cols = 6, .seed = 1});
  for (const char* projection : {"gaussian", "sign", "sparse"}) {
    const std::string tail = std::string("projection=") + projection + ", serving_type=float64)";
    const BuiltVersion built =
        MustBuild(SpecOf("multiclass(classes=3, dimensions=8, " + tail, "4*linear()"), x);
    EXPECT_EQ(built.output_columns, 24);
    const BuiltVersion together =
        MustBuild(SpecOf("random_projection(dimensions=24, " + tail, "4*linear()"), x);
    const Matrix<double> f = FeaturesFrom(built, x);
    const Matrix<double> g = FeaturesFrom(together, x);
    for (int64_t i = 0; i < f.size(); ++i) {
      EXPECT_NEAR(f.data()[i], std::sqrt(3.0) * g.data()[i], 1e-12) << projection;
    }
  }
}

// R_y is the projection of class y to n dimensions. ⟨R_y x, R_y x'⟩ has mean x·x'. For the blocks
// of different classes, the mean is 0. The variances are at most 2‖x‖²‖x'‖²/n. The mean over the
// seeds may deviate by six standard deviations.
TEST(MulticlassTest, InnerProductsAreKeptWithinABlockAndVanishAcross) {
  constexpr int kSeeds = 1500;
  constexpr int64_t kDimensions = 4;
  const Matrix<double> x = NormalRows({.rows = 3, .cols = 6, .seed = 2});
  const Matrix<double> exact = NaiveGram(x, x);
  for (const char* projection : {"gaussian", "sign", "sparse", "orthonormal"}) {
    Matrix<double> within(3, 3);
    Matrix<double> across(3, 3);
    for (int seed = 0; seed < kSeeds; ++seed) {
      const BuiltVersion built = MustBuild(
          SpecOf(
              std::string("multiclass(classes=2, dimensions=4, serving_type=float64, projection=") +
                  projection + ")",
              "linear()", false, static_cast<uint64_t>(seed)),
          x);
      const Matrix<double> f = FeaturesFrom(built, x);
      for (int64_t i = 0; i < 3; ++i) {
        for (int64_t j = 0; j < 3; ++j) {
          within(i, j) += Dot(Block(f, i, 1, kDimensions), Block(f, j, 1, kDimensions), 4) / kSeeds;
          across(i, j) += Dot(Block(f, i, 0, kDimensions), Block(f, j, 1, kDimensions), 4) / kSeeds;
        }
      }
    }
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        const double sigma = std::sqrt(2 * exact(i, i) * exact(j, j) / kDimensions / kSeeds);
        EXPECT_NEAR(within(i, j), exact(i, j), 6 * sigma) << projection;
        EXPECT_NEAR(across(i, j), 0, 6 * sigma) << projection;
      }
    }
  }
}

// Returns the smallest margin of a row's own class over another class, when a single vector v
// scores all classes. The vectors w_y of the classes are axes. There are 60 rows, with the cosine
// 0.8 to the vector of their own class and 0 to those of the other classes. R_y is the projection
// of class y to n dimensions, and v = Σ_y R_y w_y. The score of class y is ⟨v, R_y x⟩. The margin
// of class y over class y' is the difference of their scores, divided by ‖v‖·√(‖R_y x‖² + ‖R_y'
// x‖²).
double LeastLeadOfOneVector(int64_t n, uint64_t seed) {
  constexpr int64_t kClasses = 3;
  constexpr int64_t kColumns = 30;
  Matrix<double> x = NormalRows({.rows = kClasses + 60, .cols = kColumns, .seed = 3});
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t k = 0; k < kClasses; ++k) x(i, k) = 0;
    const double rest = std::sqrt(Dot(x.row(i), x.row(i), kColumns));
    for (int64_t k = 0; k < kColumns; ++k) x(i, k) *= i < kClasses ? 0 : 0.6 / rest;
    x(i, i % kClasses) = i < kClasses ? 1 : 0.8;
  }
  const BuiltVersion built =
      MustBuild(SpecOf("multiclass(classes=3, dimensions=" + std::to_string(n) + ")", "linear()",
                       false, seed),
                x);
  const Matrix<double> f = FeaturesFrom(built, x);
  std::vector<double> v(static_cast<size_t>(n));
  for (int64_t y = 0; y < kClasses; ++y) {
    for (int64_t k = 0; k < n; ++k) v[k] += Block(f, y, y, n)[k];
  }
  const double length = std::sqrt(Dot(v.data(), v.data(), n));
  double least = 2;
  for (int64_t i = kClasses; i < x.rows(); ++i) {
    const double* own = Block(f, i, i % kClasses, n);
    for (int64_t y = 0; y < kClasses; ++y) {
      if (y == i % kClasses) continue;
      const double* other = Block(f, i, y, n);
      const double lead = Dot(v.data(), own, n) - Dot(v.data(), other, n);
      least = std::min(least, lead / (length * std::sqrt(Dot(own, own, n) + Dot(other, other, n))));
    }
  }
  return least;
}

// Tests Theorem 9 at the distortion at which the bound on the margin is half of γ/√(2L). γ is the
// margin, L = 3 the number of classes, and δ = 0.05. As many seeds as AreAsRareAs allows may
// violate the bound. The theorem requires 3,530 dimensions. The union bound over all margins, with
// the exact law for a cosine of γ/√(2L), requires only 370 (scipy). With a third of 370, the bound
// is violated more often.
TEST(MulticlassTest, OneVectorSeparatesTheClassesWithTheMarginOfTheTheorem) {
  constexpr double kMargin = 0.8;
  constexpr int kTrials = 200;
  const double e = OneParameterDistortion(kMargin, 3);
  const double promised = OneParameterMargin(kMargin, e, 3);
  EXPECT_NEAR(promised, 0.16329932, 1e-8);
  const auto broken = [&](int64_t n, int trials) {
    int count = 0;
    for (int seed = 0; seed < trials; ++seed) {
      count += LeastLeadOfOneVector(n, static_cast<uint64_t>(seed)) < promised ? 1 : 0;
    }
    return count;
  };
  const int64_t n = AngleDimensions(e, 60.0 * 2, 0.05).value();
  EXPECT_EQ(n, 3530);
  EXPECT_EQ(broken(n, 5), 0);
  EXPECT_TRUE(AreAsRareAs(0.05, broken(370, kTrials), kTrials));
  EXPECT_FALSE(AreAsRareAs(0.05, broken(123, kTrials), kTrials));
}

TEST(MulticlassTest, OrthonormalBlocksAreSoEachAndDoNotDependOnTheOthers) {
  const Matrix<double> x = NormalRows({.rows = 30, .cols = 7, .seed = 4});
  const auto build = [&](int classes) {
    return FeaturesFrom(MustBuild(SpecOf("multiclass(classes=" + std::to_string(classes) +
                                             ", dimensions=7, projection=orthonormal, "
                                             "serving_type=float64)",
                                         "linear()"),
                                  x),
                        x);
  };
  const Matrix<double> two = build(2);
  const Matrix<double> three = build(3);
  for (int64_t i = 0; i < 30; ++i) {
    for (int64_t k = 0; k < 14; ++k) EXPECT_EQ(two(i, k), three(i, k));
    // A rotation does not change lengths.
    for (int64_t y = 0; y < 3; ++y) {
      EXPECT_NEAR(Dot(Block(three, i, y, 7), Block(three, i, y, 7), 7), Dot(x.row(i), x.row(i), 7),
                  1e-10);
    }
  }
}

TEST(MulticlassTest, CertificateNamesTheTheoremWithItsNumbersAndNoKernelError) {
  const Matrix<double> x = NormalRows({.rows = 600, .cols = 10, .seed = 5});
  const BuiltVersion built =
      MustBuild(SpecOf("multiclass(classes=2, dimensions=20000)", "linear()"), x);
  EXPECT_THAT(built.certificate.theorem, HasSubstr("Theorem 9"));
  EXPECT_THAT(built.certificate.theorem, HasSubstr("more than nothing from γ = "));
  EXPECT_FALSE(built.certificate.kernel_error.has_value());
  EXPECT_TRUE(built.certificate.serving_error.has_value());
  const BuiltVersion few =
      MustBuild(SpecOf("multiclass(classes=20, dimensions=30)", "linear()"), x);
  EXPECT_THAT(few.certificate.theorem, HasSubstr("promises nothing for any margin"));
}

TEST(MulticlassTest, WhatDoesNotFitIsRefusedByName) {
  const auto field = [](const MappingSpec& spec) { return FieldOf(spec.Validate()); };
  const Family* kind = FindFamily("multiclass");
  EXPECT_EQ(field({.kind = kind, .dimensions = 5}), "classes");
  EXPECT_EQ(field({.kind = kind, .dimensions = 5, .classes = 1}), "classes");
  EXPECT_EQ(field({.kind = kind, .dimensions = 0, .classes = 2}), "dimensions");
  EXPECT_EQ(field({.kind = kind, .dimensions = 32769, .classes = 2}), "dimensions");
  EXPECT_TRUE((MappingSpec{.kind = kind, .dimensions = 32768, .classes = 2}).Validate().ok());
  EXPECT_EQ(field({.kind = FindFamily("random_projection"), .dimensions = 5, .classes = 2}),
            "classes");
  EXPECT_EQ(DetailOf(SpecOf("multiclass(classes=2, dimensions=2)", "rbf()").Validate())->reason,
            "KERNEL_NOT_APPLICABLE");
  const Matrix<double> x = NormalRows({.rows = 20, .cols = 3, .seed = 6});
  EXPECT_EQ(DetailOf(Build(SpecOf("multiclass(classes=2, dimensions=4, projection=orthonormal)",
                                  "linear()"),
                           x)
                         .status())
                ->reason,
            "DIMENSIONS_TOO_MANY");
}

}  // namespace
}  // namespace phimap::testing
