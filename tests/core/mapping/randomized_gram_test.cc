#include "core/mapping/kernel_pca/randomized_gram.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/linalg/blas.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/checkpoints.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr char kKernel[] = "2*rbf(gamma=0.2)";
constexpr GramRandomization kSparsified{.sparsify = 4};
constexpr GramRandomization kQuantised{.quantise = true};
constexpr GramRandomization kBoth{.sparsify = 4, .quantise = true};
constexpr GramRandomization kAll[] = {kSparsified, kQuantised, kBoth};

KernelProgram Program(const char* kernel = kKernel) {
  UseOneBlasThread();
  return KernelProgram::Compile(MustParseKernel(kernel));
}

RandomizedGram MustDraw(const Matrix<double>& rows, const GramRandomization& randomization,
                        uint64_t seed, const char* kernel = kKernel) {
  return RandomizedGram::Draw(Program(kernel), rows.view(), randomization, seed, NeverStop).value();
}

Matrix<float> Dense(const RandomizedGram& gram) {
  Matrix<float> dense(gram.rows(), gram.rows());
  EXPECT_TRUE(gram.SubtractFrom(dense.view(), NeverStop).ok());
  for (int64_t i = 0; i < dense.size(); ++i) dense.data()[i] = -dense.data()[i];
  return dense;
}

TEST(RandomizedGramTest, IsSymmetricWithAnExactDiagonalAndTheValuesOfItsLaw) {
  const Matrix<double> rows = NormalRows({.rows = 90, .cols = 3, .seed = 1});
  const Matrix<double> k = NaiveKernelMatrix(MustParseKernel(kKernel), rows, rows);
  for (const GramRandomization& randomization : kAll) {
    const Matrix<float> dense = Dense(MustDraw(rows, randomization, 7));
    const double s = randomization.sparsify;
    for (int64_t i = 0; i < 90; ++i) {
      EXPECT_EQ(dense(i, i), 2);
      for (int64_t j = 0; j < i; ++j) {
        EXPECT_EQ(dense(i, j), dense(j, i));
        if (dense(i, j) == 0 && s > 1) continue;
        const double expected = randomization.quantise ? 2 * s : s * k(i, j);
        EXPECT_NEAR(std::abs(dense(i, j)), expected, 1e-6 * s) << i << " " << j;
      }
    }
  }
}

// Compares with a Python program that has its own Philox4x32-10, which was checked with the known
// answers of Random123. kKept marks the kept entries below the diagonal. kSigns has the signs of
// all entries. Both are for seed 11 and for rows whose numbers are multiples of 1/4. Stream 16
// gives the gaps between kept entries, 1 + floor(log(u)/log1p(-1/4)) for a uniform number u. Stream
// 17 gives the signs.
TEST(RandomizedGramTest, EntriesAreThoseOfTheFrozenStreams) {
  constexpr int64_t kRows = 12;
  constexpr uint64_t kSeed = 11;
  constexpr int kQuarters[] = {0, 7, 2, 11, 8, 6, 5, 5, 6, 8, 11, 2};
  const std::string kKept[] = {"",         ".",         "..",         "x..",
                               "..x.",     "x.x..",     "......",     "..xxxx.",
                               ".......x", ".........", "x.x...xx.x", "..xx.xxx..."};
  const std::string kSigns[] = {"",         "+",         "++",         "-+-",
                                "-+++",     "+++++",     "++++++",     "+++++++",
                                "-++-++++", "+++++++++", "++-+++-+++", "+++-++-++++"};
  Matrix<double> rows(kRows, 1);
  for (int64_t i = 0; i < kRows; ++i) rows(i, 0) = kQuarters[i] / 4.0;
  const Matrix<float> sparse = Dense(MustDraw(rows, kSparsified, kSeed));
  const Matrix<float> both = Dense(MustDraw(rows, kBoth, kSeed));
  const Matrix<float> coins = Dense(MustDraw(rows, kQuantised, kSeed));
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      const bool kept = kKept[i][j] == 'x';
      const int sign = kSigns[i][j] == '+' ? 1 : -1;
      EXPECT_EQ(sparse(i, j) != 0, kept) << i << " " << j;
      EXPECT_EQ(coins(i, j), 2 * sign) << i << " " << j;
      EXPECT_EQ(both(i, j), kept ? 8 * sign : 0) << i << " " << j;
    }
  }
}

// Tests the mean, the variance and one covariance of entries over T draws. σ is EntryDeviation, the
// bound on the standard deviation of an entry. The mean of an entry has a standard deviation of at
// most σ/√T. The covariance of two entries has a standard deviation of at most σ²/√T. Seeds are
// fixed. Six standard deviations are allowed.
TEST(RandomizedGramTest, EntriesAreUnbiasedWithTheVarianceOfTheLawAndUncorrelated) {
  constexpr int kDraws = 3000;
  constexpr int64_t kRows = 9;
  const Matrix<double> rows = NormalRows({.rows = kRows, .cols = 2, .seed = 3});
  const Matrix<double> k = NaiveKernelMatrix(MustParseKernel(kKernel), rows, rows);
  for (const GramRandomization& randomization : kAll) {
    Matrix<double> mean(kRows, kRows);
    Matrix<double> square(kRows, kRows);
    double covariance = 0;
    double sigma = 0;
    for (int seed = 0; seed < kDraws; ++seed) {
      const RandomizedGram gram = MustDraw(rows, randomization, seed);
      sigma = EntryDeviation(gram.law());
      const Matrix<float> dense = Dense(gram);
      for (int64_t i = 0; i < mean.size(); ++i) {
        const double off = dense.data()[i] - k.data()[i];
        mean.data()[i] += off / kDraws;
        square.data()[i] += off * off / kDraws;
      }
      covariance += (dense(5, 3) - k(5, 3)) * (dense(7, 3) - k(7, 3)) / kDraws;
    }
    const double s = randomization.sparsify;
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        const double variance =
            randomization.quantise ? s * 4 - k(i, j) * k(i, j) : (s - 1) * k(i, j) * k(i, j);
        EXPECT_LE(variance, sigma * sigma * (1 + 1e-12));
        EXPECT_NEAR(mean(i, j), 0, 6 * std::sqrt(variance / kDraws));
        // The fourth moment is at most s times the square of the bound on the variance.
        EXPECT_NEAR(square(i, j), variance, 6 * sigma * sigma * std::sqrt(2 * s / kDraws));
      }
    }
    EXPECT_NEAR(covariance, 0, 6 * sigma * sigma / std::sqrt(1.0 * kDraws));
  }
}

TEST(RandomizedGramTest, ProductsAreThoseOfItsEntries) {
  for (const int64_t m : {1, 5, 64, 131}) {
    const Matrix<double> rows = NormalRows({.rows = m, .cols = 3, .seed = 4});
    const Matrix<double> v = UniformRows({.rows = 3, .cols = m, .seed = 5});
    for (const GramRandomization& randomization : kAll) {
      const RandomizedGram gram = MustDraw(rows, randomization, 9);
      const Matrix<float> dense = Dense(gram);
      Matrix<double> out(3, m);
      ASSERT_TRUE(gram.Multiply(v.view(), out.view(), NeverStop).ok());
      for (int64_t n = 0; n < 3; ++n) {
        for (int64_t i = 0; i < m; ++i) {
          double expected = 0;
          for (int64_t j = 0; j < m; ++j) expected += v(n, j) * dense(i, j);
          // A sum of up to 131 products under 8, computed in float32.
          ASSERT_NEAR(out(n, i), expected, 131 * 8 * std::ldexp(1.0, -24) * 20) << m;
        }
      }
    }
  }
}

// Lanczos gives a lower estimate of the norm. The measured error must be at least the norm and at
// most 2.1 % over it. The lower estimate may exceed the norm by a share of 1e-5, because of
// float32.
TEST(RandomizedGramTest, TheErrorThatIsMeasuredIsTheSpectralNormFromAboveAndKeepsBothBounds) {
  constexpr int64_t kRows = 300;
  const Matrix<double> rows = NormalRows({.rows = kRows, .cols = 3, .seed = 6});
  const Matrix<double> k = NaiveKernelMatrix(MustParseKernel(kKernel), rows, rows);
  for (const GramRandomization& randomization : kAll) {
    const RandomizedGram gram = MustDraw(rows, randomization, 13);
    const GramError error = MeasureGramError(Program(), rows.view(), gram, 1, NeverStop).value();
    const Matrix<float> dense = Dense(gram);
    Matrix<double> difference(kRows, kRows);
    double largest_row = 0;
    for (int64_t i = 0; i < kRows; ++i) {
      double row = 0;
      for (int64_t j = 0; j < kRows; ++j) {
        difference(i, j) = dense(i, j) - k(i, j);
        if (i != j) row += k(i, j) * k(i, j);
      }
      largest_row = std::max(largest_row, row);
    }
    const std::vector<double> values = SymmetricEigenvalues(difference.view()).value();
    const double norm = std::max(-values.front(), values.back());
    EXPECT_GE(error.norm, norm);
    EXPECT_LE(error.norm, 1.021 * norm);
    EXPECT_LE(error.norm_from_below, norm * (1 + 1e-5));
    EXPECT_GE(error.norm_from_below, 0.98 * norm);
    EXPECT_NEAR(error.largest_row, largest_row, 1e-5 * largest_row);
    EXPECT_LE(error.norm, AmsNormBound(gram.law()));
    EXPECT_LE(error.norm, BernsteinNormBound(gram.law(), 0.05, error.largest_row));
    EXPECT_LE(error.norm, BernsteinNormBound(gram.law(), 0.05));
  }
}

// Tests that the bounds on the norm are at most three times too large. If every entry has the
// largest possible variance σ², the norm of an m×m matrix is about 2σ√m (Wigner). This is half of
// AMS's bound and over a third of Bernstein's. For sparsification, the variance is largest if all
// entries of K are equal. For quantisation, it is largest if all entries off the diagonal are 0.
TEST(RandomizedGramTest, AThirdOfTheNormBoundsIsBrokenByEntriesOfTheLargestVariance) {
  constexpr int64_t kRows = 400;
  Matrix<double> rows(kRows, 1);
  for (const GramRandomization& randomization : kAll) {
    for (int64_t i = 0; i < kRows; ++i) {
      rows(i, 0) = randomization.quantise ? static_cast<double>(i) : 1;
    }
    const RandomizedGram gram = MustDraw(rows, randomization, 13, "2*delta()");
    const GramError error =
        MeasureGramError(Program("2*delta()"), rows.view(), gram, 1, NeverStop).value();
    for (const double bound : {AmsNormBound(gram.law()), BernsteinNormBound(gram.law(), 0.05)}) {
      EXPECT_LE(error.norm, bound);
      EXPECT_GT(error.norm, bound / 3);
    }
    // In a row of equal entries, Σ_{j≠i} K_ij² is as large as b allows.
    EXPECT_NEAR(error.largest_row, randomization.quantise ? 0 : 4 * (kRows - 1), 1e-9);
  }
}

TEST(RandomizedGramTest, SingleGramIsTheKernelMatrixRounded) {
  const Matrix<double> rows = NormalRows({.rows = 515, .cols = 3, .seed = 8});
  const Matrix<double> k = NaiveKernelMatrix(MustParseKernel(kKernel), rows, rows);
  const Matrix<float> single = SingleGram(Program(), rows.view(), NeverStop).value();
  EXPECT_LE(LargestDifference(single, k), 2 * std::ldexp(1.0, -24) + 1e-12);
}

TEST(RandomizedGramTest, StopsWhereItIsToldAndRefusesAKernelThatIsZero) {
  const Matrix<double> rows = NormalRows({.rows = 300, .cols = 3, .seed = 8});
  ExpectStopsAt(3, [&](Checkpoint checkpoint) {
    return RandomizedGram::Draw(Program(), rows.view(), kBoth, 1, checkpoint).status();
  });
  const Matrix<double> zeros(5, 2);
  EXPECT_EQ(
      DetailOf(
          RandomizedGram::Draw(Program("linear()"), zeros.view(), kBoth, 1, NeverStop).status())
          ->reason,
      "KERNEL_ZERO");
}

}  // namespace
}  // namespace phimap::testing
