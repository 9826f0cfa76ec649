#include "core/kernel/column_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/kernel/column_sum_rows.h"
#include "core/kernel/kernel_program.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/random_rows.h"
#include "tests/support/vector_targets.h"

namespace phimap::testing {
namespace {

constexpr ColumnTerm kTerms[] = {
#define PHIMAP_TERM(NAME, CODE) ColumnTerm::NAME,
    PHIMAP_COLUMN_TERMS(PHIMAP_TERM)
#undef PHIMAP_TERM
};

// Rows without negative numbers, with a 0 here and there.
template <typename T>
Matrix<T> PositiveRows(int64_t rows, int64_t columns, uint64_t seed) {
  const Matrix<double> uniform = UniformRows({.rows = rows, .cols = columns, .seed = seed});
  Matrix<T> out(rows, columns);
  for (int64_t i = 0; i < out.size(); ++i) {
    out.data()[i] = static_cast<T>(std::max(0.0, std::abs(uniform.data()[i]) - 0.1));
  }
  return out;
}

template <typename T>
std::vector<T> SumsOf(const ColumnSum& sum, const Matrix<T>& z, const T* x) {
  std::vector<T> out(static_cast<size_t>(z.rows()));
  T* const row = out.data();
  ColumnSumRows<T>(sum, z.view()).Sums(x, z.cols(), 1, &row);
  return out;
}

template <typename T>
void ExpectSumsOfTheFormula(const ColumnSum& sum, int64_t rows, int64_t columns) {
  SCOPED_TRACE(::testing::Message()
               << "term " << static_cast<int>(sum.term) << ", " << rows << " rows of " << columns);
  const Matrix<T> z = PositiveRows<T>(rows, columns, 1);
  const Matrix<T> x = PositiveRows<T>(1, columns, 2);
  const std::vector<T> sums = SumsOf(sum, z, x.row(0));
  const KernelProgram program =
      *KernelProgram::FromParts({.ops = {{.code = KernelOpCode::kPushColumnSum}}, .sums = {sum}});
  for (int64_t j = 0; j < rows; ++j) {
    const NaiveRow a(z.row(j), z.row(j) + columns);
    const long double expected = NaiveProgramOfRows(program, {x.row(0), x.row(0) + columns}, a)[0];
    // Terms are positive. Each term has at most 5 roundings, and the sum one more for each term.
    const double roundings = 5 + static_cast<double>(sum.ColumnsReadOf(columns));
    ASSERT_NEAR(static_cast<double>(sums[j]), static_cast<double>(expected),
                roundings * std::numeric_limits<T>::epsilon() * static_cast<double>(expected))
        << j;
  }
}

TEST(ColumnSumTest, SumsAreThoseOfTheFormulaForAllSizes) {
  for (const ColumnTerm term : kTerms) {
    for (const int64_t rows : {1, 15, 16, 17, 31, 32, 33, 64, 100}) {
      ExpectSumsOfTheFormula<float>({.term = term}, rows, 7);
      ExpectSumsOfTheFormula<double>({.term = term}, rows, 7);
    }
    for (const int64_t columns : {1, 511, 512, 513, 1100}) {
      ExpectSumsOfTheFormula<float>({.term = term}, 3, columns);
      ExpectSumsOfTheFormula<double>({.term = term}, 3, columns);
    }
    ExpectSumsOfTheFormula<float>({.term = term, .first = 2, .weights = {1, 0, 4}}, 5, 6);
    ExpectSumsOfTheFormula<double>({.term = term, .first = 2, .weights = {1, 0, 4}}, 5, 6);
    ExpectSumsOfTheFormula<double>({.term = term, .first = 3, .weights = {}}, 5, 6);
  }
}

TEST(ColumnSumTest, BitsAreThoseOfEveryTargetWithFusedMultiplyAdd) {
  const Matrix<float> z = PositiveRows<float>(45, 600, 3);
  const Matrix<float> x = PositiveRows<float>(1, 600, 4);
  for (const ColumnTerm term : kTerms) {
    std::vector<std::vector<float>> sums;
    for (const VectorTarget& target : SupportedVectorTargets()) {
      if (!target.fused) continue;
      const ForcedVectorTarget forced(target);
      sums.push_back(SumsOf<float>({.term = term}, z, x.row(0)));
    }
    for (const std::vector<float>& other : sums) EXPECT_EQ(other, sums[0]);
  }
}

template <typename T>
void ExpectBitsOfRowsAlone(ColumnTerm term, int64_t columns) {
  const ColumnSum sum{.term = term, .first = 1};
  const Matrix<T> z = PositiveRows<T>(70, columns, 3);
  const Matrix<T> x = PositiveRows<T>(11, columns + 3, 4);  // the stride is larger than the row
  for (const int64_t count : {1, 2, 3, 4, 5, 8, 11}) {
    Matrix<T> sums(count, 70);
    std::vector<T*> rows;
    for (int64_t i = 0; i < count; ++i) rows.push_back(sums.row(i));
    ColumnSumRows<T>(sum, z.view()).Sums(x.data(), x.cols(), count, rows.data());
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(std::vector<T>(sums.row(i), sums.row(i) + 70), SumsOf(sum, z, x.row(i))) << i;
    }
  }
}

TEST(ColumnSumTest, BitsOfARowDoNotDependOnTheRowsBesideIt) {
  for (const ColumnTerm term : kTerms) {
    for (const int64_t columns : {3, 600}) {
      ExpectBitsOfRowsAlone<float>(term, columns);
      ExpectBitsOfRowsAlone<double>(term, columns);
    }
  }
}

TEST(ColumnSumTest, NegativeNumbersHaveNoValueWhereTheTermIsOfPositiveOnes) {
  Matrix<double> z(2, 2);
  z(0, 0) = 1;
  z(0, 1) = -1e-9;
  z(1, 0) = 1;
  const double x[] = {2, 3};
  for (const ColumnTerm term :
       {ColumnTerm::kHarmonicMean, ColumnTerm::kChiSquare, ColumnTerm::kMinimum}) {
    const std::vector<double> sums = SumsOf<double>({.term = term}, z, x);
    EXPECT_TRUE(std::isnan(sums[0]));
    EXPECT_TRUE(std::isfinite(sums[1]));
    EXPECT_TRUE(std::isnan((ColumnSum{.term = term}.Self(z.row(0), 2))));
    // With weights that leave the negative column out, the sum is finite.
    EXPECT_TRUE(std::isfinite(SumsOf<double>({.term = term, .weights = {1}}, z, x)[0]));
  }
}

TEST(ColumnSumTest, SelfSumsAreTheLimitOfSumsOfPairs) {
  const Matrix<double> x = PositiveRows<double>(1, 9, 5);
  for (const ColumnTerm term : kTerms) {
    const ColumnSum sum{.term = term, .first = 1, .weights = {2, 0, 1, 1, 3}};
    EXPECT_NEAR(sum.Self(x.row(0), 9), SumsOf<double>(sum, x, x.row(0))[0], 1e-14);
  }
}

TEST(ColumnSumTest, ProgramsOfUntrustedSumsAreRefused) {
  const auto code_of = [](ColumnSum sum, int32_t n) {
    return KernelProgram::FromParts(
               {.ops = {{.code = KernelOpCode::kPushColumnSum, .n = n}}, .sums = {std::move(sum)}})
        .status()
        .code();
  };
  EXPECT_EQ(code_of({}, 0), StatusCode::kOk);
  EXPECT_EQ(code_of({}, 1), StatusCode::kDataLoss);
  EXPECT_EQ(code_of({}, -1), StatusCode::kDataLoss);
  EXPECT_EQ(code_of({.term = static_cast<ColumnTerm>(0)}, 0), StatusCode::kDataLoss);
  EXPECT_EQ(code_of({.term = static_cast<ColumnTerm>(7)}, 0), StatusCode::kDataLoss);
  EXPECT_EQ(code_of({.first = -1}, 0), StatusCode::kDataLoss);
  EXPECT_EQ(code_of({.first = 65536}, 0), StatusCode::kDataLoss);
  EXPECT_EQ(code_of({.first = 65535, .weights = {1, 1}}, 0), StatusCode::kDataLoss);
  EXPECT_EQ(code_of({.weights = {-1}}, 0), StatusCode::kDataLoss);
  EXPECT_EQ(code_of({.weights = {std::nan("")}}, 0), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace phimap::testing
