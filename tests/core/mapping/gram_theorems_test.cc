// Theorems 2 to 5 of Achlioptas, McSherry, Schölkopf 2001, and Hoeffding's bound of equation 1, on
// Gram matrices that make them as tight as we know how to: kernel PCA randomizes and rounds, and
// each bound is also seen to fail with a constant three times too small, or less.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/linalg/blas.h"
#include "core/mapping/kernel_pca/kernel_pca.h"
#include "core/theory/gram_bounds.h"
#include "gtest/gtest.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap {
namespace {

using testing::MustParseKernel;
using testing::MustTransformWide;
using testing::NaiveKernelMatrix;
using testing::NormalRows;
using testing::WireRows;

LandmarkTask TaskOfLinearRows(const Matrix<double>& landmarks) {
  UseOneBlasThread();
  return {.kernel = MustParseKernel("linear()"),
          .input = {.columns = landmarks.cols()},
          .landmarks = landmarks.view(),
          .serving_type = FloatType::kFloat64};
}

// Rows of linear() in pairs, each pair in a plane of its own: K is made of blocks (A, k; k, A − δ),
// A = 200, 100, 50, 25. Sparsified by s = 2 an entry k becomes 0 or 2k, so that ‖K̂ − K‖ is k
// whatever is drawn, and all of it acts between two neighbouring components. A random K̂ − K of a
// dense K acts between any two with 1/√m of its norm, and shows nothing of these theorems.
class PairedRows {
 public:
  static constexpr int kPairs = 4;
  static constexpr double kOff = 0.5;

  explicit PairedRows(double difference) : rows_(2 * kPairs, 2 * kPairs) {
    for (int p = 0; p < kPairs; ++p) {
      const double a = 200 * std::pow(0.5, p);
      rows_(2 * p, 2 * p) = std::sqrt(a);
      rows_(2 * p + 1, 2 * p) = kOff / std::sqrt(a);
      rows_(2 * p + 1, 2 * p + 1) = std::sqrt(a - difference - kOff * kOff / a);
    }
    vectors_ = NaiveKernelMatrix(MustParseKernel("linear()"), rows_, rows_);
    values_ = SymmetricEigenvectors(vectors_.view()).value();
  }

  const Matrix<double>& rows() const { return rows_; }
  // The n-th largest eigenvalue of K, n from 0, and its unit vector.
  double value(int n) const { return values_[values_.size() - 1 - n]; }
  const double* vector(int n) const { return vectors_.row(vectors_.rows() - 1 - n); }

 private:
  Matrix<double> rows_;
  Matrix<double> vectors_;
  std::vector<double> values_;
};

// The two leading components of K̂.
struct SparsifiedPca {
  std::vector<double> values;
  Matrix<double> vectors;  // unit rows

  SparsifiedPca(const PairedRows& pairs, uint64_t seed) {
    const absl::StatusOr<KernelPca> pca = BuildKernelPca(
        TaskOfLinearRows(pairs.rows()),
        {.components = 2, .centred = false, .seed = seed, .gram = {.sparsify = 2}}, NeverStop);
    EXPECT_TRUE(pca.ok()) << pca.status();
    values = pca->eigenvalues;
    const Matrix<double>& w =
        std::get<DenseProjection<double>>(std::get<1>(pca->served.stages).projection).matrix;
    vectors = Matrix<double>(w.cols(), w.rows());
    for (int64_t n = 0; n < w.cols(); ++n) {
      for (int64_t i = 0; i < w.rows(); ++i) vectors(n, i) = w(i, n) * std::sqrt(values[n]);
    }
  }
};

double ProductOf(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += a[k] * b[k];
  return sum;
}

constexpr int kRowsOfPairs = 2 * PairedRows::kPairs;
constexpr uint64_t kPairSeeds = 8;

// ‖F̂ᵀ(t)·F_⊥(t − b)‖ at t = λ̂_1 and the largest b, which is just under t − λ_2; the vectors of
// F_⊥ are K's from the second on.
TEST(GramTheoremsTest, WhatIsFoundIsNotOfLowerComponentsByTheoremTwo) {
  for (const double difference : {1.0, 2.0, 8.0}) {
    const PairedRows pairs(difference);
    for (uint64_t seed = 0; seed < kPairSeeds; ++seed) {
      const SparsifiedPca found(pairs, seed);
      double square = 0;
      for (int n = 1; n < kRowsOfPairs; ++n) {
        const double product = ProductOf(found.vectors.row(0), pairs.vector(n), kRowsOfPairs);
        square += product * product;
      }
      const double b = found.values[0] - pairs.value(1);
      const auto holds = [&](double constant) {
        return std::sqrt(square) <= constant * PairedRows::kOff / b * (1 + 1e-5);
      };
      EXPECT_TRUE(holds(1)) << difference << " " << seed;
      EXPECT_FALSE(holds(0.5)) << difference << " " << seed;
    }
  }
}

// ‖Fᵀ(t + b)·F̂_⊥(t)‖, the second inequality, at t just over λ̂_2 and b = λ_1 − t: what of K's first
// vector is outside of K̂'s.
TEST(GramTheoremsTest, WhatIsLargeIsFoundByTheoremTwo) {
  for (const double difference : {1.0, 2.0, 8.0}) {
    const PairedRows pairs(difference);
    for (uint64_t seed = 0; seed < kPairSeeds; ++seed) {
      const SparsifiedPca found(pairs, seed);
      const double cosine = ProductOf(found.vectors.row(0), pairs.vector(0), kRowsOfPairs);
      double square = 0;
      for (int i = 0; i < kRowsOfPairs; ++i) {
        const double off = pairs.vector(0)[i] - cosine * found.vectors(0, i);
        square += off * off;
      }
      const double b = pairs.value(0) - found.values[1];
      const auto holds = [&](double constant) {
        return std::sqrt(square) <= constant * PairedRows::kOff / b * (1 + 1e-5);
      };
      EXPECT_TRUE(holds(1)) << difference << " " << seed;
      EXPECT_FALSE(holds(0.5)) << difference << " " << seed;
    }
  }
}

// With equal diagonal entries, the eigenvalues A ± k move by k to one side or the other.
TEST(GramTheoremsTest, EigenvaluesMoveByTheNormAndNoMoreByWeylsInequality) {
  const PairedRows pairs(0);
  for (uint64_t seed = 0; seed < kPairSeeds; ++seed) {
    const SparsifiedPca found(pairs, seed);
    for (int n = 0; n < 2; ++n) {
      EXPECT_NEAR(std::abs(found.values[n] - pairs.value(n)), PairedRows::kOff, 1e-4) << seed;
    }
  }
}

// Theorem 4, and Theorem 3 with ℓ = 1, where the rotation is a sign: |f_1(x) − f̂_1(x)| <= ‖v‖/c
// without λ^{-1/2}, for gaps of 2c‖K̂ − K‖, at any c. v along α − α̂ is the worst there is. Where the
// entry is dropped half of the bound is broken at every c; where it is doubled, up to 0.02 of it is
// left.
TEST(GramTheoremsTest, FeaturesAreKsOwnByTheoremFourAtEveryC) {
  double largest_c = 0;
  for (const double difference : {0.1, 1.0, 2.0, 4.0, 8.0, 16.0}) {
    const PairedRows pairs(difference);
    const double c = (pairs.value(0) - pairs.value(1)) / (2 * PairedRows::kOff);
    ASSERT_GE(c, 1);
    largest_c = std::max(c, largest_c);
    double largest = 0;
    for (uint64_t seed = 0; seed < kPairSeeds; ++seed) {
      const SparsifiedPca found(pairs, seed);
      const double sign =
          ProductOf(found.vectors.row(0), pairs.vector(0), kRowsOfPairs) > 0 ? 1 : -1;
      // v = (α − α̂)/‖α − α̂‖, so that the features differ by ‖α − α̂‖.
      double square = 0;
      for (int i = 0; i < kRowsOfPairs; ++i) {
        const double off = sign * found.vectors(0, i) - pairs.vector(0)[i];
        square += off * off;
      }
      EXPECT_LE(std::sqrt(square), 1 / c) << difference << " " << seed;
      largest = std::max(largest, std::sqrt(square));
    }
    EXPECT_GT(largest, 1 / (2 * c)) << difference;
  }
  EXPECT_GT(largest_c, 8);
}

// m equal rows: K is 1 everywhere, its first unit expansion α = 1/√m, and f(x) = √m of each row.
class EqualRows {
 public:
  explicit EqualRows(int64_t m) : rows_(m, 1) { std::fill_n(rows_.data(), m, 1.0); }

  struct Rounded {
    double value;  // f̂(x)
    int64_t weights;
  };
  Rounded RoundedAt(double scale, uint64_t seed) const {
    const absl::StatusOr<KernelPca> pca = BuildKernelPca(
        TaskOfLinearRows(rows_),
        {.components = 1, .centred = false, .seed = seed, .rounding = scale}, NeverStop);
    EXPECT_TRUE(pca.ok()) << pca.status();
    Matrix<double> x(1, 1);
    x(0, 0) = 1;
    const double f = MustTransformWide(pca->served, WireRows(x))(0, 0);
    return {f * std::sqrt(pca->eigenvalues[0]), pca->rounding->weights};
  }

 private:
  Matrix<double> rows_;
};

// Equation 1. At s = √m/2 each weight is a fair coin and each value the whole range of {0} ∪ k: the
// largest variance that the inequality allows for, so that it is above the truth by what it is
// above a normal tail. With a third of mc² it is broken.
TEST(GramTheoremsTest, RoundedExpansionsMissAsRarelyAsStated) {
  constexpr int kRows = 100;
  constexpr int kTrials = 1000;
  const EqualRows rows(kRows);
  std::vector<double> off;
  for (int trial = 0; trial < kTrials; ++trial) {
    off.push_back(std::abs(rows.RoundedAt(5, static_cast<uint64_t>(trial)).value - 10));
  }
  const auto holds = [&](double t, double range) {
    const double p = RoundingProbability(kRows, range, 5, t);
    const auto missed = std::count_if(off.begin(), off.end(), [&](double o) { return o >= t; });
    return static_cast<double>(missed) <= kTrials * p + 6 * std::sqrt(kTrials * p);
  };
  for (const double t : {1.1, 2.1, 3.1}) {
    EXPECT_TRUE(holds(t, 1)) << t;
  }
  EXPECT_FALSE(holds(2.1, std::sqrt(1.0 / 3)));
}

// Theorem 5 at ε = 0.5, T = 8, c = 1, m = 170: s = 2c√m/(εT) = √m/2. Fewer than 4cm/(εT) weights
// are left, which is twice their mean; and f̂ is within 1 ± ε of f = √m, or both are under T√ln m =
// 18.1. f = 13.0 is, and so much under it that only f̂ > 1.5·f breaks that: as near as can be, with
// probability 1/m³ at the theorem's scale, 6.5 sigma here; 2.9 sigma at a third of it.
TEST(GramTheoremsTest, RoundingAtTheScaleOfTheoremFiveKeepsItsTwoPromises) {
  constexpr int kRows = 170;
  constexpr double kEpsilon = 0.5;
  constexpr double kThreshold = 8;
  ASSERT_LE(kThreshold, std::sqrt(kRows / std::log(1.0 * kRows)) / kEpsilon);
  const EqualRows rows(kRows);
  const double exact = std::sqrt(1.0 * kRows);
  const double trivial = kThreshold * std::sqrt(std::log(1.0 * kRows));
  ASSERT_LT(exact, trivial);
  struct Broken {
    int four = 0, two = 0;  // as many weights as 4cm/(εT), or half of that
    int value = 0;          // f̂ neither near f nor trivial
  };
  const auto broken = [&](double scale, int trials) {
    Broken count;
    for (int trial = 0; trial < trials; ++trial) {
      const EqualRows::Rounded f = rows.RoundedAt(scale, static_cast<uint64_t>(trial));
      const double weights = static_cast<double>(f.weights) * kEpsilon * kThreshold / kRows;
      count.four += weights >= 4 ? 1 : 0;
      count.two += weights >= 2 ? 1 : 0;
      const bool near = std::abs(f.value - exact) <= kEpsilon * exact;
      count.value += near || f.value < trivial ? 0 : 1;
    }
    return count;
  };
  const double scale = RoundingScale(kRows, 1, kEpsilon, kThreshold);
  EXPECT_NEAR(scale, exact / 2, 1e-12);
  const Broken stated = broken(scale, 500);
  EXPECT_EQ(stated.four, 0);
  EXPECT_GT(stated.two, 150);
  EXPECT_EQ(stated.value, 0);
  EXPECT_GT(broken(scale / 3, 2000).value, 0);
}

}  // namespace
}  // namespace phimap
