// Tests that products of sparse rows have the same bits as those of their dense form, on every
// vector unit.
#include <cmath>
#include <limits>
#include <vector>

#include "core/linalg/panel_product.h"
#include "gtest/gtest.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"
#include "tests/support/vector_targets.h"

namespace phimap::testing {
namespace {

template <typename T>
class PanelSparseTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(PanelSparseTest, Types);

template <typename T>
struct Rows {
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> columns;
  std::vector<T> values;
  // A view of the first `rows` rows.
  SparseRowsRef<T> ref(int64_t rows) const {
    return {rows, offsets.data(), columns.data(), values.data()};
  }
  SparseRowsRef<T> ref() const { return ref(static_cast<int64_t>(offsets.size()) - 1); }
};

// Returns sparse rows that store all nonzero entries and some zeros of either sign. (Zeros may be
// stored or left out.)
template <typename T>
Rows<T> Named(const Matrix<T>& dense) {
  Rows<T> rows;
  for (int64_t i = 0; i < dense.rows(); ++i) {
    for (int64_t k = 0; k < dense.cols(); ++k) {
      if (dense(i, k) == 0 && (i + k) % 11 != 0) continue;
      rows.columns.push_back(static_cast<int32_t>(k));
      rows.values.push_back(dense(i, k));
    }
    rows.offsets.push_back(static_cast<int64_t>(rows.values.size()));
  }
  return rows;
}

// Returns numbers of very different sizes, some of them so small that products underflow. Also
// contains zeros of either sign: as single numbers, as whole chains and as whole rows.
template <typename T>
Matrix<T> MostlyZeros(int64_t rows, int64_t depth, uint64_t seed) {
  Matrix<T> z = UniformRowsOf<T>({.rows = rows, .cols = depth, .seed = seed});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < depth; ++k) {
      const bool block_is_empty = (k / kChainBlock + i) % 3 == 2;
      if (i % 7 == 6 || block_is_empty || (k * 5 + i) % 17 != 0) {
        z(i, k) = (i + k) % 2 == 0 ? T{0} : -T{0};
      } else if (k % 3 == 0) {
        z(i, k) = std::copysign(std::numeric_limits<T>::denorm_min(), z(i, k));
      } else {
        z(i, k) = std::ldexp(z(i, k), static_cast<int>((i * depth + k) * 7 % 23) - 11);
      }
    }
  }
  return z;
}

// Compares the first 1, 2, 15 and all of the rows with their dense form, on every target.
template <typename T>
void ExpectBitsOfTheDenseForm(const Matrix<T>& z, int64_t columns) {
  const Matrix<T> w = UniformRowsOf<T>({.rows = z.cols(), .cols = columns, .seed = 2});
  const Rows<T> sparse = Named(z);
  for (const VectorTarget& target : SupportedVectorTargets()) {
    const ForcedVectorTarget forced(target);
    const auto packed = PanelMatrix<T>::Pack(w.view());
    Matrix<T> expected(z.rows(), columns);
    std::vector<T*> out;
    for (int64_t i = 0; i < z.rows(); ++i) out.push_back(expected.row(i));
    packed.Multiply(z.data(), z.cols(), z.rows(), out.data());
    for (const int64_t rows : {int64_t{1}, int64_t{2}, int64_t{15}, z.rows()}) {
      Matrix<T> actual(rows, columns);
      for (int64_t i = 0; i < rows; ++i) out[i] = actual.row(i);
      packed.MultiplySparse(sparse.ref(rows), out.data());
      EXPECT_TRUE(SameBits(actual.data(), expected.data(), actual.size()))
          << target.name << ": " << rows << " of " << z.cols() << " x " << columns;
    }
  }
}

TYPED_TEST(PanelSparseTest, ProductsHaveTheBitsOfTheDenseForm) {
  using T = TypeParam;
  // The depths are around the size of a chain's block. The numbers of columns cover every number of
  // panels for which the sums of a row may be kept.
  for (const int64_t depth : {1, 2, 511, 512, 513, 1030, 2100}) {
    for (const int64_t columns : {1, 15, 33, 70, 131, 200, 260}) {
      ExpectBitsOfTheDenseForm(MostlyZeros<T>(17, depth, 1), columns);
    }
  }
}

TYPED_TEST(PanelSparseTest, AsManyRowsAsThereMayBeHaveTheBitsOfTheDenseForm) {
  using T = TypeParam;
  ExpectBitsOfTheDenseForm(MostlyZeros<T>(kMaxSparseRows, 1500, 4), 150);
}

TYPED_TEST(PanelSparseTest, RowsThatNameEveryNumberHaveTheBitsOfTheDenseForm) {
  using T = TypeParam;
  ExpectBitsOfTheDenseForm(UniformRowsOf<T>({.rows = kMaxSparseRows, .cols = 1100, .seed = 5}), 70);
}

// Tests chains whose sum is −0 after a product that underflowed, before and after zeros.
TYPED_TEST(PanelSparseTest, SignOfAZeroThatUnderflowLeavesIsTheDenseOne) {
  using T = TypeParam;
  const T tiny = std::numeric_limits<T>::min();
  Matrix<T> z(4, 1030);
  z(0, 5) = -tiny;
  z(1, 5) = -tiny;
  z(1, 600) = -tiny;
  z(2, 0) = tiny;
  z(2, 1029) = -tiny;
  Matrix<T> w(1030, 40);
  for (int64_t k = 0; k < 1030; ++k) {
    for (int64_t j = 0; j < 40; ++j) w(k, j) = (k + j) % 2 == 0 ? tiny : -tiny;
  }
  const auto packed = PanelMatrix<T>::Pack(w.view());
  Matrix<T> y(4, 40);
  std::vector<T*> out;
  for (int64_t i = 0; i < 4; ++i) out.push_back(y.row(i));
  packed.MultiplySparse(Named(z).ref(), out.data());
  for (int64_t n = 0; n < y.size(); ++n) {
    EXPECT_EQ(y.data()[n], T{0});
    EXPECT_FALSE(std::signbit(y.data()[n])) << n;
  }
}

TYPED_TEST(PanelSparseTest, NotANumberStaysInItsRow) {
  using T = TypeParam;
  Matrix<T> z(3, 20);
  z(0, 3) = 1;
  z(1, 4) = std::numeric_limits<T>::infinity();
  z(2, 5) = 1;
  Matrix<T> w(20, 3);
  w(3, 0) = w(5, 1) = 2;
  const auto packed = PanelMatrix<T>::Pack(w.view());
  Matrix<T> y(3, 3);
  T* const out[] = {y.row(0), y.row(1), y.row(2)};
  packed.MultiplySparse(Named(z).ref(), out);
  EXPECT_EQ(y(0, 0), 2);
  EXPECT_TRUE(std::isnan(y(1, 0)));  // infinity times 0
  EXPECT_EQ(y(2, 1), 2);
}

TYPED_TEST(PanelSparseTest, SquaredNormsHaveTheBitsOfTheDenseForm) {
  using T = TypeParam;
  for (const int64_t columns : {1, 30, 512, 513, 1700}) {
    const Matrix<T> x = MostlyZeros<T>(15, columns, 3);
    for (const VectorTarget& target : SupportedVectorTargets()) {
      const ForcedVectorTarget forced(target);
      Matrix<T> expected(1, 15);
      Matrix<T> actual(1, 15);
      ChainSquaredNorms(x.data(), columns, 15, columns, expected.data());
      ChainSquaredNorms(Named(x).ref(), actual.data());
      EXPECT_TRUE(SameBits(actual, expected)) << target.name << ": " << columns;
    }
  }
}

}  // namespace
}  // namespace phimap::testing
