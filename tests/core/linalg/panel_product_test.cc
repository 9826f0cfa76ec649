// Compares the panel product with a textbook product in long double, on every vector unit of the
// machine.
#include "core/linalg/panel_product.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"
#include "tests/support/vector_targets.h"

namespace phimap::testing {
namespace {

template <typename T>
class PanelProductTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(PanelProductTest, Types);

template <typename T>
Matrix<T> Product(const PanelMatrix<T>& w, const Matrix<T>& z) {
  Matrix<T> y(z.rows(), w.columns());
  std::vector<T*> rows;
  for (int64_t i = 0; i < y.rows(); ++i) rows.push_back(y.row(i));
  w.Multiply(z.data(), z.cols(), z.rows(), rows.data());
  return y;
}

// Returns a bound on the error of a sum of n = `depth` products z·w. If each addition and each
// product is rounded at most once, the sum differs from the exact one by at most (n + 1)·u·Σ|z||w|
// to first order (Higham, section 3.1). u is the unit round-off. The product adds the sums of
// blocks, which costs one more rounding for each block. But the chain of each block is shorter by
// more than that.
template <typename T>
long double Bound(const NaiveSum& exact, int64_t depth) {
  const long double u = std::numeric_limits<T>::epsilon() / 2;
  return (depth + 2) * u * exact.magnitude;
}

TYPED_TEST(PanelProductTest, AgreesWithTheExactProductForAllSizesAroundTheVectorWidth) {
  using T = TypeParam;
  constexpr int64_t kColumns = 70;
  constexpr int64_t kRows = 30;
  for (const int64_t depth : {0, 1, 2, 511, 512, 513, 1024, 1025}) {
    const Matrix<T> z = UniformRowsOf<T>({.rows = kRows, .cols = depth, .seed = 1});
    const Matrix<T> w = UniformRowsOf<T>({.rows = depth, .cols = kColumns, .seed = 2});
    std::vector<NaiveSum> exact(kRows * kColumns);
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kColumns; ++j) {
        exact[i * kColumns + j] = NaiveDot<T>(
            depth, [&](int64_t k) { return z(i, k); }, [&](int64_t k) { return w(k, j); });
      }
    }
    for (const VectorTarget& target : SupportedVectorTargets()) {
      const ForcedVectorTarget forced(target);
      for (int64_t columns = 1; columns <= kColumns; ++columns) {
        const auto packed =
            PanelMatrix<T>::Pack(ConstMatrixView<T>(w.data(), depth, columns, kColumns));
        ASSERT_EQ(packed.depth(), depth);
        ASSERT_EQ(packed.columns(), columns);
        // Tests all numbers of rows with one number of columns, and all numbers of columns with one
        // number of rows.
        for (int64_t rows = columns == 37 ? 1 : kRows; rows <= kRows; ++rows) {
          Matrix<T> some = Matrix<T>::Uninit(rows, depth);
          std::copy_n(z.data(), some.size(), some.data());
          const Matrix<T> y = Product(packed, some);
          for (int64_t i = 0; i < rows; ++i) {
            for (int64_t j = 0; j < columns; ++j) {
              const NaiveSum& e = exact[i * kColumns + j];
              ASSERT_LE(std::abs(y(i, j) - e.value), Bound<T>(e, depth))
                  << target.name << " depth " << depth << " columns " << columns << " row " << i
                  << " of " << rows << " column " << j;
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(PanelProductTest, TransposedPackingEqualsPackingTheTranspose) {
  using T = TypeParam;
  for (const int64_t columns : {1, 7, 16, 17, 33, 64, 65}) {
    for (const int64_t depth : {1, 5, 513}) {
      const Matrix<T> a = UniformRowsOf<T>({.rows = columns, .cols = depth, .seed = 3});
      const Matrix<T> z = UniformRowsOf<T>({.rows = 13, .cols = depth, .seed = 4});
      EXPECT_TRUE(SameBits(Product(PanelMatrix<T>::PackTransposed(a.view()), z),
                           Product(PanelMatrix<T>::Pack(NaiveTransposed(a).view()), z)))
          << columns << "×" << depth;
    }
  }
}

TYPED_TEST(PanelProductTest, TriangleEqualsTheDenseMatrixWithZerosBelow) {
  using T = TypeParam;
  for (const int64_t n : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 511, 513, 600}) {
    const Matrix<T> numbers = UniformRowsOf<T>({.rows = 1, .cols = n * (n + 1) / 2, .seed = 5});
    Matrix<T> dense(n, n);
    const T* next = numbers.data();
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t j = k; j < n; ++j) dense(k, j) = *next++;
    }
    const Matrix<T> z = UniformRowsOf<T>({.rows = 14, .cols = n, .seed = 6});
    const auto triangle = PanelMatrix<T>::PackUpperTriangle(numbers.data(), n);
    const auto full = PanelMatrix<T>::Pack(std::as_const(dense).view());
    EXPECT_TRUE(SameBits(Product(triangle, z), Product(full, z))) << n;
    EXPECT_LE(triangle.memory_bytes(), full.memory_bytes()) << n;
    if (n >= 4 * triangle.panel_columns()) {
      // The purpose of the packing is to save multiplications: n²/2 of them are left, plus at most
      // 3/2 panels for each row.
      const int64_t width = triangle.panel_columns();
      EXPECT_LE(triangle.multiplications(), n * (n + width) / 2 + n * width) << n;
    }
  }
}

TYPED_TEST(PanelProductTest, RangesOfPanelsWriteTheirColumnsOnly) {
  using T = TypeParam;
  constexpr T kUntouched = 12345;
  const Matrix<T> w = UniformRowsOf<T>({.rows = 40, .cols = 137, .seed = 7});
  const Matrix<T> z = UniformRowsOf<T>({.rows = 9, .cols = 40, .seed = 8});
  const auto packed = PanelMatrix<T>::Pack(w.view());
  const Matrix<T> all = Product(packed, z);
  for (int64_t first = 0; first <= packed.panels(); ++first) {
    for (int64_t last = first; last <= packed.panels(); ++last) {
      Matrix<T> y = Matrix<T>::Uninit(9, 137);
      std::fill_n(y.data(), y.size(), kUntouched);
      std::vector<T*> rows;
      for (int64_t i = 0; i < 9; ++i) rows.push_back(y.row(i));
      packed.Multiply(z.data(), 40, 9, first, last, rows.data());
      const int64_t begin = std::min<int64_t>(137, first * packed.panel_columns());
      const int64_t end = std::min<int64_t>(137, last * packed.panel_columns());
      for (int64_t i = 0; i < 9; ++i) {
        for (int64_t j = 0; j < 137; ++j) {
          ASSERT_EQ(y(i, j), j >= begin && j < end ? all(i, j) : kUntouched)
              << first << ".." << last << " at " << i << ", " << j;
        }
      }
    }
  }
}

TYPED_TEST(PanelProductTest, RowsMayBeStridedAndResultsScattered) {
  using T = TypeParam;
  const Matrix<T> w = UniformRowsOf<T>({.rows = 21, .cols = 19, .seed = 9});
  Matrix<T> wide = UniformRowsOf<T>({.rows = 15, .cols = 33, .seed = 10});
  Matrix<T> z = Matrix<T>::Uninit(15, 21);
  for (int64_t i = 0; i < 15; ++i) {
    std::copy_n(wide.row(i), 21, z.row(i));
    // Padding between the rows must not affect a result.
    std::fill_n(wide.row(i) + 21, 12, std::numeric_limits<T>::quiet_NaN());
  }
  const auto packed = PanelMatrix<T>::Pack(w.view());
  const Matrix<T> expected = Product(packed, z);
  Matrix<T> y(15, 19);
  std::vector<T*> rows;
  for (int64_t i = 0; i < 15; ++i) rows.push_back(y.row(14 - i));
  packed.Multiply(wide.data(), 33, 15, rows.data());
  for (int64_t i = 0; i < 15; ++i) {
    EXPECT_TRUE(SameBits(y.row(14 - i), expected.row(i), 19)) << i;
  }
}

TYPED_TEST(PanelProductTest, NaNAndInfinityStayInTheirRow) {
  using T = TypeParam;
  const Matrix<T> w = UniformRowsOf<T>({.rows = 530, .cols = 40, .seed = 11});
  for (const VectorTarget& target : SupportedVectorTargets()) {
    const ForcedVectorTarget forced(target);
    const auto packed = PanelMatrix<T>::Pack(w.view());
    const Matrix<T> clean = UniformRowsOf<T>({.rows = 14, .cols = 530, .seed = 12});
    const Matrix<T> expected = Product(packed, clean);
    for (int64_t bad = 0; bad < 14; ++bad) {
      Matrix<T> z = clean.Clone();
      z(bad, 17 * bad) =
          bad % 2 == 0 ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::infinity();
      const Matrix<T> y = Product(packed, z);
      for (int64_t i = 0; i < 14; ++i) {
        if (i == bad) {
          for (int64_t j = 0; j < 40; ++j) EXPECT_FALSE(std::isfinite(y(i, j)));
        } else {
          EXPECT_TRUE(SameBits(y.row(i), expected.row(i), 40)) << target.name;
        }
      }
    }
  }
}

// Row 1 has an infinite result in the last column only, and row 3 in every column. Row 2 has NaN.
// Row 4 has finite results whose sum overflows. The other rows are ordinary.
TYPED_TEST(PanelProductTest, CheckFindsTheRowsWithAResultThatIsNotFinite) {
  using T = TypeParam;
  constexpr T kMost = std::numeric_limits<T>::max();
  for (const VectorTarget& target : SupportedVectorTargets()) {
    const ForcedVectorTarget forced(target);
    for (const int64_t columns : {1, 8, 32, 64, 70, 200}) {
      Matrix<T> w(600, columns);
      std::fill_n(w.row(0), columns, T{1});
      w(1, columns - 1) = 2;
      const auto packed = PanelMatrix<T>::Pack(std::as_const(w).view());
      for (const int64_t rows : {5, 14, 40}) {
        Matrix<T> z(rows, 600);
        z(1, 1) = kMost;
        z(2, 599) = std::numeric_limits<T>::quiet_NaN();
        z(3, 0) = -std::numeric_limits<T>::infinity();
        z(4, 0) = kMost;
        Matrix<T> y(rows, columns);
        std::vector<T*> out;
        for (int64_t i = 0; i < rows; ++i) out.push_back(y.row(i));
        bool finite[40];
        std::fill_n(finite, 40, true);
        packed.MultiplyAndCheck(z.data(), 600, rows, out.data(), finite);
        EXPECT_TRUE(SameBits(y, Product(packed, z))) << target.name;
        for (int64_t i = 0; i < 40; ++i) {
          EXPECT_EQ(finite[i], i < 1 || i > 3)
              << target.name << " row " << i << " of " << rows << ", " << columns << " columns";
        }
      }
    }
  }
}

TYPED_TEST(PanelProductTest, EmptyMatricesWriteNothingOrZeros) {
  using T = TypeParam;
  const PanelMatrix<T> none;
  none.Multiply(nullptr, 0, 0, nullptr);
  EXPECT_EQ(none.panels(), 0);
  EXPECT_EQ(none.memory_bytes(), 0);
  T y[3] = {1, 2, 3};
  T* row = y;
  PanelMatrix<T>::Pack(ConstMatrixView<T>(nullptr, 0, 3)).Multiply(nullptr, 0, 1, &row);
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[2], 0);
}

}  // namespace
}  // namespace phimap::testing
