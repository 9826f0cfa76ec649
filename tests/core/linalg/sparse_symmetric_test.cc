#include "core/linalg/sparse_symmetric.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/checkpoints.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

// One symmetric matrix, in sparse and in dense form. About one in `s` of the entries below the
// diagonal is nonzero. A hash of the entry's row and column decides which entries are. All diagonal
// entries are stored.
struct Sample {
  Sample(int64_t m, int64_t s) : sparse(m), dense(m, m) {
    const Matrix<double> numbers =
        UniformRows({.rows = m, .cols = m, .seed = static_cast<uint64_t>(m)});
    for (int64_t i = 0; i < m; ++i) {
      std::vector<uint16_t> columns;
      std::vector<float> values;
      for (int64_t j = 0; j < i; ++j) {
        if ((i * 7919 + j * 104729) % s != 0) continue;
        columns.push_back(static_cast<uint16_t>(j));
        values.push_back(static_cast<float>(numbers(i, j)));
        dense(i, j) = dense(j, i) = values.back();
      }
      const auto diagonal = static_cast<float>(numbers(i, i));
      dense(i, i) = diagonal;
      sparse.AddRow(i, diagonal, columns, values);
    }
    EXPECT_TRUE(sparse.Mirror(NeverStop).ok());
  }
  SparseSymmetric sparse;
  Matrix<double> dense;
};

// The matrix has float32 entries. A sum of n products has a rounding error of at most (n + 2)·2⁻²⁴
// times the sum of the products' magnitudes.
TEST(SparseSymmetricTest, ProductsAreThoseOfTheDenseMatrix) {
  for (const int64_t m : {1, 2, 17, 64, 65, 300}) {
    for (const int64_t s : {1, 3, 50}) {
      const Sample sample(m, s);
      for (const int64_t vectors : {1, 15, 16, 17, 32, 33, 70}) {
        const Matrix<double> v = UniformRows({.rows = vectors, .cols = m, .seed = 3});
        Matrix<double> out(vectors, m);
        ASSERT_TRUE(sample.sparse.Multiply(v.view(), out.view(), NeverStop).ok());
        for (int64_t n = 0; n < vectors; ++n) {
          for (int64_t i = 0; i < m; ++i) {
            double expected = 0;
            double size = 0;
            for (int64_t j = 0; j < m; ++j) {
              expected += sample.dense(i, j) * v(n, j);
              size += std::abs(sample.dense(i, j) * v(n, j));
            }
            ASSERT_NEAR(out(n, i), expected, std::ldexp(m + 2.0, -24) * size)
                << m << " " << s << " " << vectors;
          }
        }
      }
    }
  }
}

TEST(SparseSymmetricTest, StoredEntriesAreTheLowerTriangleRowByRow) {
  const Sample sample(40, 3);
  int64_t count = 0;
  sample.sparse.ForEachStored(0, 40, [&](int64_t i, int64_t j, float value) {
    EXPECT_LE(j, i);
    EXPECT_EQ(value, static_cast<float>(sample.dense(i, j)));
    ++count;
  });
  EXPECT_EQ(count, sample.sparse.stored());
  EXPECT_GT(count, 40 + 40 * 39 / 2 / 4);
}

// The matrix has 61,000 entries below the diagonal, so a product has several tiles.
TEST(SparseSymmetricTest, ProductsHaveTheSameBitsForAnyNumberOfThreads) {
  const Sample sample(700, 4);
  EXPECT_GT(sample.sparse.stored(), 700 * 80);
  for (const int64_t vectors : {1, 24, 40}) {
    const Matrix<double> v = UniformRows({.rows = vectors, .cols = 700, .seed = 3});
    Matrix<double> alone(vectors, 700);
    ASSERT_TRUE(sample.sparse.Multiply(v.view(), alone.view(), NeverStop).ok());
    for (const int count : {2, 5}) {
      Matrix<double> together(vectors, 700);
      const auto threads = [&] { return count; };
      ASSERT_TRUE(sample.sparse.Multiply(v.view(), together.view(), {threads, NeverStop}).ok());
      EXPECT_TRUE(std::equal(alone.data(), alone.data() + alone.size(), together.data())) << count;
    }
  }
}

TEST(SparseSymmetricTest, AProductStopsWhereItIsTold) {
  const Sample sample(700, 4);
  const Matrix<double> v = UniformRows({.rows = 1, .cols = 700, .seed = 3});
  Matrix<double> out(1, 700);
  ExpectStopsAt(4, [&](Checkpoint checkpoint) {
    return sample.sparse.Multiply(v.view(), out.view(), checkpoint);
  });
}

TEST(SparseSymmetricTest, AVectorsProductDoesNotDependOnThoseBesideIt) {
  const Sample sample(120, 4);
  const Matrix<double> v = UniformRows({.rows = 20, .cols = 120, .seed = 5});
  Matrix<double> together(20, 120);
  ASSERT_TRUE(sample.sparse.Multiply(v.view(), together.view(), NeverStop).ok());
  for (int64_t n = 0; n < 20; ++n) {
    Matrix<double> alone(1, 120);
    ASSERT_TRUE(sample.sparse.Multiply(v.view().Rows(n, 1), alone.view(), NeverStop).ok());
    for (int64_t i = 0; i < 120; ++i) EXPECT_EQ(alone(0, i), together(n, i));
  }
}

}  // namespace
}  // namespace phimap::testing
