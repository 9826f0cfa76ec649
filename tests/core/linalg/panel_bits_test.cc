// Tests that products have the bits that arithmetic 1 defines, element by element, on every target
// with fused multiply-add.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/linalg/panel_product.h"
#include "gtest/gtest.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/random_rows.h"
#include "tests/support/vector_targets.h"

namespace phimap::testing {
namespace {

template <typename T>
class PanelBitsTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(PanelBitsTest, Types);

template <typename T>
Matrix<T> Product(const PanelMatrix<T>& w, const T* z, int64_t rows) {
  Matrix<T> y(rows, w.columns());
  std::vector<T*> out;
  for (int64_t i = 0; i < rows; ++i) out.push_back(y.row(i));
  w.Multiply(z, w.depth(), rows, out.data());
  return y;
}

// Returns numbers of very different sizes, so that another order of summation gives other bits.
template <typename T>
Matrix<T> Spread(int64_t rows, int64_t cols, uint64_t seed) {
  Matrix<T> m = UniformRowsOf<T>({.rows = rows, .cols = cols, .seed = seed});
  for (int64_t i = 0; i < m.size(); ++i) m.data()[i] = std::ldexp(m.data()[i], i * 7 % 23 - 11);
  return m;
}

TYPED_TEST(PanelBitsTest, EachElementIsTheChainThatArithmeticOneDefines) {
  using T = TypeParam;
  for (const int64_t depth : {1, 2, 511, 512, 513, 1024, 1025}) {
    const Matrix<T> z = Spread<T>(13, depth, 1);
    const Matrix<T> w = Spread<T>(depth, 70, 2);
    Matrix<T> expected = Matrix<T>::Uninit(13, 70);
    for (int64_t i = 0; i < 13; ++i) {
      for (int64_t j = 0; j < 70; ++j) {
        expected(i, j) = ChainDot<T>(
            depth, [&](int64_t k) { return z(i, k); }, [&](int64_t k) { return w(k, j); });
      }
    }
    for (const VectorTarget& target : SupportedVectorTargets()) {
      if (!target.fused) continue;
      const ForcedVectorTarget forced(target);
      const auto packed = PanelMatrix<T>::Pack(w.view());
      EXPECT_TRUE(SameBits(Product(packed, z.data(), 13), expected))
          << target.name << " depth " << depth;
    }
  }
}

// The numbers of rows and columns are around the sizes of three kinds of groups: groups of panels,
// blocks of rows, and the blocks that are held back for `finish`.
TYPED_TEST(PanelBitsTest, FinishGetsEachResultOnceWithTheBitsThatMultiplyStores) {
  using T = TypeParam;
  for (const int64_t depth : {5, 600}) {
    const Matrix<T> z = Spread<T>(130, depth, 1);
    for (const int64_t columns : {1, 31, 32, 33, 70, 300}) {
      const Matrix<T> w = Spread<T>(depth, columns, 2);
      for (const VectorTarget& target : SupportedVectorTargets()) {
        const ForcedVectorTarget forced(target);
        const auto packed = PanelMatrix<T>::Pack(w.view());
        for (const int64_t rows : {1, 2, 3, 4, 11, 12, 13, 40, 64, 65, 130}) {
          const Matrix<T> expected = Product(packed, z.data(), rows);
          Matrix<T> y(rows, columns);
          Matrix<int> calls(rows, columns);
          std::vector<T*> out;
          for (int64_t i = 0; i < rows; ++i) out.push_back(y.row(i));
          const auto finish = [&](const ProductBlock<T>& block) {
            for (int64_t i = 0; i < block.rows; ++i) {
              for (int64_t j = 0; j < block.columns; ++j) {
                y(block.first_row + i, block.first_column + j) = block.values[i * block.stride + j];
                ++calls(block.first_row + i, block.first_column + j);
              }
              std::fill_n(block.values + i * block.stride, block.columns, T{-7});
            }
          };
          packed.MultiplyAndFinish(z.data(), depth, rows, out.data(), finish);
          ASSERT_TRUE(SameBits(y, expected)) << target.name << " " << rows << " x " << columns;
          ASSERT_EQ(std::count(calls.data(), calls.data() + calls.size(), 1), calls.size())
              << target.name << " " << rows << " x " << columns;
        }
      }
    }
  }
}

// Computes the L1 distance by its definition. In each step, the difference and the sum are rounded.
// The blocks and their order are those of the product.
template <typename T>
T ChainL1Distance(const T* z, const Matrix<T>& w, int64_t j) {
  T total = 0;
  for (int64_t begin = 0; begin < w.rows(); begin += kChainBlock) {
    T sum = 0;
    for (int64_t k = begin; k < std::min(w.rows(), begin + kChainBlock); ++k) {
      sum += std::abs(z[k] - w(k, j));
    }
    total += sum;
  }
  return total;
}

TYPED_TEST(PanelBitsTest, L1DistancesAreTheirChainsForAnyNumberOfRowsAndColumns) {
  using T = TypeParam;
  for (const int64_t depth : {1, 2, 511, 513, 1025}) {
    const Matrix<T> z = Spread<T>(26, depth, 1);
    for (const int64_t columns : {1, 15, 33, 70, 131}) {
      const Matrix<T> w = Spread<T>(depth, columns, 2);
      for (const VectorTarget& target : SupportedVectorTargets()) {
        const ForcedVectorTarget forced(target);
        const auto packed = PanelMatrix<T>::Pack(w.view());
        for (const int64_t rows : {1, 2, 3, 5, 11, 12, 13, 26}) {
          Matrix<T> y(rows, columns);
          std::vector<T*> out;
          for (int64_t i = 0; i < rows; ++i) out.push_back(y.row(i));
          packed.L1Distances(z.data(), depth, rows, out.data());
          for (int64_t i = 0; i < rows; ++i) {
            for (int64_t j = 0; j < columns; ++j) {
              ASSERT_EQ(y(i, j), ChainL1Distance(z.row(i), w, j))
                  << target.name << " depth " << depth << ", " << rows << " x " << columns;
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(PanelBitsTest, TriangleIsTheChainOverItsNonZeroPart) {
  using T = TypeParam;
  constexpr int64_t kOrder = 600;
  const Matrix<T> elements = Spread<T>(1, kOrder * (kOrder + 1) / 2, 3);
  const Matrix<T> z = Spread<T>(3, kOrder, 4);
  Matrix<T> expected = Matrix<T>::Uninit(3, kOrder);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < kOrder; ++j) {
      expected(i, j) = ChainDot<T>(
          j + 1, [&](int64_t k) { return z(i, k); },
          [&](int64_t k) { return elements.data()[k * kOrder - k * (k - 1) / 2 + (j - k)]; });
    }
  }
  for (const VectorTarget& target : SupportedVectorTargets()) {
    if (!target.fused) continue;
    const ForcedVectorTarget forced(target);
    const auto packed = PanelMatrix<T>::PackUpperTriangle(elements.data(), kOrder);
    EXPECT_TRUE(SameBits(Product(packed, z.data(), 3), expected)) << target.name;
  }
}

// Vector targets without fused multiply-add are tested too. For such a target, bits are only
// promised to be equal among its own results.
TYPED_TEST(PanelBitsTest, RowAloneHasTheBitsThatItHasInAnyBatch) {
  using T = TypeParam;
  const Matrix<T> w = Spread<T>(517, 45, 5);
  const Matrix<T> z = Spread<T>(30, 517, 6);
  for (const VectorTarget& target : SupportedVectorTargets()) {
    const ForcedVectorTarget forced(target);
    const auto packed = PanelMatrix<T>::Pack(w.view());
    Matrix<T> alone = Matrix<T>::Uninit(30, 45);
    for (int64_t i = 0; i < 30; ++i) {
      const Matrix<T> y = Product(packed, z.row(i), 1);
      std::copy_n(y.data(), 45, alone.row(i));
    }
    for (int64_t rows = 1; rows <= 30; ++rows) {
      for (const int64_t first : {int64_t{0}, 30 - rows}) {
        const Matrix<T> y = Product(packed, z.row(first), rows);
        EXPECT_TRUE(SameBits(y.data(), alone.row(first), y.size()))
            << target.name << " rows " << first << " + " << rows;
      }
    }
  }
}

TYPED_TEST(PanelBitsTest, ZeroResultsArePositive) {
  using T = TypeParam;
  constexpr T kTiny = std::numeric_limits<T>::denorm_min();
  const Matrix<T> zero(1, 20);
  for (const VectorTarget& target : SupportedVectorTargets()) {
    const ForcedVectorTarget forced(target);
    Matrix<T> w = Matrix<T>::Uninit(20, 20);
    std::fill_n(w.data(), w.size(), T{-1});
    const Matrix<T> product =
        Product(PanelMatrix<T>::Pack(std::as_const(w).view()), zero.data(), 1);
    EXPECT_TRUE(SameBits(product, zero)) << target.name << ": 0 · −1";
    // The last product of each chain is −tiny², which underflows to −0. If a chain has no other
    // terms, its sum underflows to −0 too.
    Matrix<T> z(1, 20);
    z(0, 19) = -kTiny;
    std::fill_n(w.data(), w.size(), kTiny);
    const Matrix<T> underflow = Product(PanelMatrix<T>::Pack(std::as_const(w).view()), z.data(), 1);
    EXPECT_TRUE(SameBits(underflow, zero)) << target.name << ": underflow from below";
  }
}

TYPED_TEST(PanelBitsTest, SquaredNormsAreTheChainsOfTheProduct) {
  using T = TypeParam;
  for (const int64_t cols : {1, 3, 511, 512, 513, 1025}) {
    const Matrix<T> x = Spread<T>(11, cols, 7);
    Matrix<T> expected = Matrix<T>::Uninit(1, 11);
    for (int64_t i = 0; i < 11; ++i) {
      const auto element = [&](int64_t k) { return x(i, k); };
      expected(0, i) = ChainDot<T>(cols, element, element);
    }
    for (const VectorTarget& target : SupportedVectorTargets()) {
      const ForcedVectorTarget forced(target);
      for (int64_t rows = 1; rows <= 11; ++rows) {
        Matrix<T> norms(1, 11);
        ChainSquaredNorms(x.data(), cols, rows, cols, norms.data());
        if (target.fused) {
          EXPECT_TRUE(SameBits(norms.data(), expected.data(), rows)) << target.name << cols;
        }
      }
      // This is the reason why the chains must agree: a row is at distance exactly 0 from itself.
      Matrix<T> norms(1, 11);
      ChainSquaredNorms(x.data(), cols, 11, cols, norms.data());
      const Matrix<T> products = Product(PanelMatrix<T>::PackTransposed(x.view()), x.data(), 11);
      for (int64_t i = 0; i < 11; ++i) {
        EXPECT_EQ(norms(0, i) + norms(0, i) - 2 * products(i, i), T{0})
            << target.name << " row " << i << " of " << cols << " columns";
      }
    }
  }
}

TYPED_TEST(PanelBitsTest, SquaredNormsOfStridedRowsReadNothingBetweenThem) {
  using T = TypeParam;
  Matrix<T> x = Spread<T>(6, 40, 8);
  Matrix<T> expected(1, 6);
  ChainSquaredNorms(x.data(), 40, 6, 33, expected.data());
  for (int64_t i = 0; i < 6; ++i) {
    std::fill_n(x.row(i) + 33, 7, std::numeric_limits<T>::quiet_NaN());
  }
  Matrix<T> norms(1, 6);
  ChainSquaredNorms(x.data(), 40, 6, 33, norms.data());
  EXPECT_TRUE(SameBits(norms, expected));
}

TEST(VectorTargetTest, MachineHasATargetAndItsNameIsReported) {
  const std::vector<VectorTarget> targets = SupportedVectorTargets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(VectorTargetName(), targets[0].name);
  for (const VectorTarget& target : targets) {
    const ForcedVectorTarget forced(target);
    EXPECT_EQ(VectorTargetName(), target.name);
  }
}

}  // namespace
}  // namespace phimap::testing
