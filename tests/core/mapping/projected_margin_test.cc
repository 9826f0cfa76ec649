// What random projections keep: lengths (Balcan, Blum, Vempala 2006, Theorem 2) and the margins of
// data sets (Shi and others 2012), by maps that the builder made.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/mapping/random_projection.h"
#include "core/random/random_stream.h"
#include "core/theory/multiclass_bounds.h"
#include "core/theory/projection_bounds.h"
#include "gtest/gtest.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap {
namespace {

using testing::MustTransformWide;
using testing::NormalRows;
using testing::WireRows;

Matrix<double> Projected(const Matrix<double>& x, const ProjectionTask& task) {
  const InputStage input{.columns = x.cols()};
  const absl::StatusOr<PlanPair> plans = BuildRandomProjection(
      {.input = input, .serving_type = FloatType::kFloat64}, 1, task, NeverStop);
  return MustTransformWide(plans->served, WireRows(x));
}

double Dot(const Matrix<double>& x, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < x.cols(); ++k) sum += x(i, k) * x(j, k);
  return sum;
}
double Cosine(const Matrix<double>& x, int64_t i, int64_t j) {
  return Dot(x, i, j) / std::sqrt(Dot(x, i, i) * Dot(x, j, j));
}

// Theorem 2: ‖u' − v'‖² is within 1 ± e of ‖u − v‖² but with probability δ, for either kind of
// entries. Six sigma over δT of T seeds is a bug.
TEST(ProjectedMarginTest, DistancesAreKeptAsOftenAsTheoremTwoSaysByEitherKindOfEntries) {
  constexpr int kTrials = 1000;
  constexpr double kE = 0.5;
  constexpr double kDelta = 0.2;
  const Matrix<double> x = NormalRows({.rows = 2, .cols = 30, .seed = 1});
  const double before = Dot(x, 0, 0) + Dot(x, 1, 1) - 2 * Dot(x, 0, 1);
  for (const ProjectionKind kind : {ProjectionKind::kGaussian, ProjectionKind::kSign}) {
    const auto lost = [&](int64_t dimensions) {
      int count = 0;
      for (int seed = 0; seed < kTrials; ++seed) {
        const Matrix<double> f = Projected(
            x, {.kind = kind, .dimensions = dimensions, .seed = static_cast<uint64_t>(seed)});
        const double after = Dot(f, 0, 0) + Dot(f, 1, 1) - 2 * Dot(f, 0, 1);
        count += std::abs(after / before - 1) > kE ? 1 : 0;
      }
      return count;
    };
    for (const Tier tier : {Tier::kLiteral, Tier::kDerived}) {
      EXPECT_LE(lost(LengthDimensions(tier, kE, kDelta).value()),
                kDelta * kTrials + 6 * std::sqrt(kDelta * kTrials));
    }
    // P[χ²₃/3 not within 1 ± 0.5] = 0.53.
    EXPECT_GT(lost(3), 0.4 * kTrials);
  }
}

// Theorem 6, for a probability of 1e-6 that it fails: then it never does.
TEST(ProjectedMarginTest, ADataSetKeepsTheMarginOfTheoremSix) {
  constexpr int64_t kRows = 200;
  constexpr double kMargin = 0.5;
  constexpr double kE = 0.2;
  // Row 0 is the separator, row i has a cosine of ±γ with it or more, and any length.
  Matrix<double> x = NormalRows({.rows = kRows + 1, .cols = 20, .seed = 2});
  for (int64_t i = 0; i <= kRows; ++i) {
    x(i, 0) = 0;
    const double rest = std::sqrt(Dot(x, i, i));
    const double cosine = kMargin + (1 - kMargin) * static_cast<double>(i % 5) / 8;
    for (int64_t k = 1; k < 20; ++k) x(i, k) *= i == 0 ? 0 : std::sqrt(1 - cosine * cosine) / rest;
    x(i, 0) = i == 0 ? 1 : i % 2 == 0 ? cosine : -cosine;
    for (int64_t k = 0; k < 20; ++k) x(i, k) *= static_cast<double>(i % 7 + 1);
  }
  const auto margin = [&](int64_t dimensions, uint64_t seed) {
    const Matrix<double> f = Projected(x, {.dimensions = dimensions, .seed = seed});
    double least = 1;
    for (int64_t i = 1; i <= kRows; ++i) {
      least = std::min(least, (i % 2 == 0 ? 1 : -1) * Cosine(f, 0, i));
    }
    return least;
  };
  const int64_t n = AngleDimensions(kE, kRows, 1e-6).value();
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    EXPECT_GE(margin(n, seed), DataSetMargin(Tier::kLiteral, kMargin, kE));
    EXPECT_GE(margin(n, seed), DataSetMargin(Tier::kDerived, kMargin, kE));
    EXPECT_LT(margin(10, seed), DataSetMargin(Tier::kDerived, kMargin, kE));
  }
}

// Theorem 8, where its last step holds: no cosine is negative.
TEST(ProjectedMarginTest, ManyClassesKeepTheMarginOfTheoremEight) {
  constexpr int64_t kClasses = 3;
  constexpr int64_t kRows = 60;
  constexpr double kE = 0.1;
  // Rows 0 … 2 are the classes' vectors, the axes; the others are near them.
  Matrix<double> x = NormalRows({.rows = kClasses + kRows, .cols = 5, .seed = 3});
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t k = 0; k < 5; ++k) x(i, k) = i < kClasses ? 0 : 0.1 * std::abs(x(i, k));
    x(i, i % kClasses) += 1;
  }
  const auto margin = [&](const Matrix<double>& f) {
    double least = 2;
    for (int64_t i = kClasses; i < f.rows(); ++i) {
      for (int64_t y = 0; y < kClasses; ++y) {
        if (y != i % kClasses)
          least = std::min(least, Cosine(f, i % kClasses, i) - Cosine(f, y, i));
      }
    }
    return least;
  };
  const double before = margin(x);
  const double promised = ClassesMargin(before, kE);
  ASSERT_GT(promised, 0);
  const int64_t n = AngleDimensions(kE, static_cast<double>(kClasses * kRows), 1e-6).value();
  for (const uint64_t seed : {1, 2, 3}) {
    EXPECT_GE(margin(Projected(x, {.dimensions = n, .seed = seed})), promised);
    // On a line two of three classes have the same cosines.
    EXPECT_LT(margin(Projected(x, {.dimensions = 1, .seed = seed})), promised);
  }
}

// The counter-example of figure 1: (±s, 1) against (±s, −1) have the unnormalised margin 1 for
// every s, but a projection onto a line keeps them apart with the probability 2·atan(1/s)/π, which
// goes to 0 as the cosines 1/√(1 + s²) do. Six sigma.
TEST(ProjectedMarginTest, AnUnnormalisedMarginIsNotKept) {
  constexpr int kLines = 20'000;
  for (const double s : {1.0, 10.0, 100.0}) {
    Matrix<double> x(2, 2);
    x(0, 0) = -s;
    x(1, 0) = s;
    x(0, 1) = x(1, 1) = 1;
    // The rows of one matrix are so many lines.
    const Matrix<double> f = Projected(x, {.dimensions = kLines, .seed = 4});
    int apart = 0;
    for (int k = 0; k < kLines; ++k) apart += f(0, k) * f(1, k) > 0 ? 1 : 0;
    const double p = 2 * std::atan(1 / s) / std::acos(-1.0);
    EXPECT_NEAR(apart, p * kLines, 6 * std::sqrt(p * (1 - p) * kLines)) << s;
  }
}

}  // namespace
}  // namespace phimap
