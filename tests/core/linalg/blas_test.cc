// Compares the wrappers with textbook loops. The test is not about OpenBLAS but about the arguments
// of the wrappers: which operand is transposed, which triangle is read, and that strides are
// honoured.
#include "core/linalg/blas.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr double kUntouched = std::numeric_limits<double>::quiet_NaN();
// Sums of at most 40 terms of size about 3 have an error under 40 · 2^-53 · 40 · 9 < 2e-12.
constexpr double kTolerance = 2e-12;

// A rows×cols block inside of a larger matrix that is NaN elsewhere.
struct Embedded {
  Embedded(int64_t rows, int64_t cols, uint64_t seed) : storage(rows + 2, cols + 5) {
    std::fill_n(storage.data(), storage.size(), kUntouched);
    const Matrix<double> numbers = NormalRows({.rows = rows, .cols = cols, .seed = seed});
    for (int64_t i = 0; i < rows; ++i) {
      std::copy_n(numbers.row(i), cols, storage.row(i + 1) + 3);
    }
    view = storage.view().Block(1, 3, rows, cols);
  }
  // Whether everything around the block is still NaN.
  bool FrameIntact() const {
    for (int64_t i = 0; i < storage.rows(); ++i) {
      for (int64_t j = 0; j < storage.cols(); ++j) {
        const bool inside = i >= 1 && i <= view.rows() && j >= 3 && j < 3 + view.cols();
        if (!inside && !std::isnan(storage(i, j))) return false;
      }
    }
    return true;
  }
  Matrix<double> storage;
  MatrixView<double> view;
};

// Returns a lower triangle L. The numbers above it are NaN and must never be read.
Embedded EmbeddedTriangle(int64_t n, uint64_t seed) {
  Embedded l(n, n, seed);
  for (int64_t i = 0; i < n; ++i) {
    l.view(i, i) = 2 + std::abs(l.view(i, i));
    for (int64_t j = 0; j < i; ++j) l.view(i, j) /= static_cast<double>(n);
    for (int64_t j = i + 1; j < n; ++j) l.view(i, j) = kUntouched;
  }
  return l;
}

TEST(BlasTest, MultiplyAndItsTransposedForm) {
  for (const auto& [m, k, n] : {std::tuple{1, 1, 1}, {7, 5, 3}, {40, 33, 17}, {3, 40, 40}}) {
    const Embedded a(m, k, 1);
    const Embedded b(k, n, 2);
    Embedded bt(n, k, 3);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < k; ++j) bt.view(i, j) = b.view(j, i);
    }
    Embedded out(m, n, 4);
    Embedded out2(m, n, 4);
    const Embedded before(m, n, 4);
    Multiply(-0.5, a.view, b.view, 2, out.view);
    MultiplyTransposed(-0.5, a.view, bt.view, 2, out2.view);
    Embedded at(k, m, 9);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t l = 0; l < k; ++l) at.view(l, i) = a.view(i, l);
    }
    Embedded out3(m, n, 4);
    MultiplyFirstTransposed(-0.5, at.view, b.view, 2, out3.view);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) sum += a.view(i, l) * b.view(l, j);
        EXPECT_NEAR(out.view(i, j), -0.5 * sum + 2 * before.view(i, j), kTolerance);
        EXPECT_NEAR(out2.view(i, j), -0.5 * sum + 2 * before.view(i, j), kTolerance);
        EXPECT_NEAR(out3.view(i, j), -0.5 * sum + 2 * before.view(i, j), kTolerance);
      }
    }
    EXPECT_TRUE(out.FrameIntact() && out2.FrameIntact() && out3.FrameIntact());
  }
}

TEST(BlasTest, BetaZeroOverwritesNaN) {
  const Embedded a(4, 3, 1);
  const Embedded b(5, 3, 2);
  Embedded out(4, 5, 3);
  for (int64_t i = 0; i < 4; ++i) std::fill_n(out.view.row(i), 5, kUntouched);
  MultiplyTransposed(1, a.view, b.view, 0, out.view);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 5; ++j) EXPECT_FALSE(std::isnan(out.view(i, j)));
  }
}

TEST(BlasTest, InnerDimensionZeroScalesOnly) {
  Embedded out(3, 4, 1);
  const Embedded before(3, 4, 1);
  Multiply(1, ConstMatrixView<double>(nullptr, 3, 0), ConstMatrixView<double>(nullptr, 0, 4), 3,
           out.view);
  EXPECT_EQ(out.view(2, 3), 3 * before.view(2, 3));
  SymmetricRankUpdate(1, ConstMatrixView<double>(nullptr, 0, 0), 1, MatrixView<double>());
}

TEST(BlasTest, MultiplyVectorWritesWithItsStride) {
  const Embedded a(11, 6, 1);
  const Matrix<double> x = NormalRows({.rows = 1, .cols = 6, .seed = 2});
  std::vector<double> out(11 * 3, 1.0);
  MultiplyVector(2, a.view, x.data(), -1, out.data(), 3);
  for (int64_t i = 0; i < 11; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < 6; ++k) sum += a.view(i, k) * x(0, k);
    EXPECT_NEAR(out[3 * i], 2 * sum - 1, kTolerance);
    EXPECT_EQ(out[3 * i + 1], 1.0);
    EXPECT_EQ(out[3 * i + 2], 1.0);
  }
}

TEST(BlasTest, SymmetricRankUpdateTouchesTheLowerTriangleOnly) {
  const Embedded a(20, 7, 1);
  Embedded at(7, 20, 3);
  for (int64_t i = 0; i < 20; ++i) {
    for (int64_t k = 0; k < 7; ++k) at.view(k, i) = a.view(i, k);
  }
  Embedded out(20, 20, 2);
  Embedded out2(20, 20, 2);
  const Embedded before(20, 20, 2);
  SymmetricRankUpdate(-1, a.view, 1, out.view);
  SymmetricRankUpdateTransposed(-1, at.view, 1, out2.view);
  for (int64_t i = 0; i < 20; ++i) {
    for (int64_t j = 0; j < 20; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < 7; ++k) sum += a.view(i, k) * a.view(j, k);
      if (j > i) {
        EXPECT_EQ(out.view(i, j), before.view(i, j));
        EXPECT_EQ(out2.view(i, j), before.view(i, j));
      } else {
        EXPECT_NEAR(out.view(i, j), before.view(i, j) - sum, kTolerance);
        EXPECT_NEAR(out2.view(i, j), before.view(i, j) - sum, kTolerance);
      }
    }
  }
  EXPECT_TRUE(out.FrameIntact() && out2.FrameIntact());
}

TEST(BlasTest, TriangularProductsAndSolvesReadTheLowerTriangleOnly) {
  for (const int64_t m : {1, 2, 30}) {
    const Embedded l = EmbeddedTriangle(m, 1);
    const Embedded x(m, 9, 2);
    Embedded product(m, 9, 2);
    MultiplyLowerTriangle(l.view, product.view);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < 9; ++j) {
        double sum = 0;
        for (int64_t k = 0; k <= i; ++k) sum += l.view(i, k) * x.view(k, j);
        EXPECT_NEAR(product.view(i, j), sum, kTolerance);
      }
    }
    SolveLowerTriangle(l.view, product.view);
    Embedded solved(m, 9, 2);
    SolveLowerTriangleTransposed(l.view, solved.view);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < 9; ++j) {
        EXPECT_NEAR(product.view(i, j), x.view(i, j), kTolerance);
        double back = 0;
        for (int64_t k = i; k < m; ++k) back += l.view(k, i) * solved.view(k, j);
        EXPECT_NEAR(back, x.view(i, j), kTolerance);
      }
    }
    EXPECT_TRUE(product.FrameIntact() && solved.FrameIntact());
  }
}

TEST(BlasTest, CoreHasAName) {
  UseOneBlasThread();
  EXPECT_FALSE(BlasCoreName().empty());
}

}  // namespace
}  // namespace phimap::testing
