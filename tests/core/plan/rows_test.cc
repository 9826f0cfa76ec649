#include "core/plan/rows.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

template <typename T>
class RowsTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RowsTest, Types);

TYPED_TEST(RowsTest, FiniteNumbersOfEverySizePass) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  Matrix<T> x(2, 4);
  const T values[] = {
      0, T{-0.0}, Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min(), 1, -1};
  std::copy_n(values, 8, x.data());
  EXPECT_TRUE(CheckFinite(WireRows(x)).ok());
  EXPECT_TRUE(CheckFinite(WireRows(Matrix<T>(0, 4))).ok());
}

TYPED_TEST(RowsTest, FirstOffendingValueIsNamed) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  for (const T bad :
       {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), Limits::signaling_NaN()}) {
    for (int64_t at = 0; at < 21; ++at) {
      Matrix<T> x(3, 7);
      x.data()[at] = bad;
      x.data()[20] = bad;  // a second bad number, which is not reported
      const absl::Status status = CheckFinite(WireRows(x));
      ASSERT_EQ(status.code(), StatusCode::kInvalidArgument);
      const std::optional<ErrorDetail> detail = DetailOf(status);
      EXPECT_EQ(detail->reason, "VALUE_NOT_FINITE");
      EXPECT_EQ(detail->field, absl::StrCat("rows[", at / 7, "].columns[", at % 7, "]"));
      EXPECT_EQ(detail->metadata.at("row"), absl::StrCat(at / 7));
      EXPECT_EQ(detail->metadata.at("column"), absl::StrCat(at % 7));
    }
  }
}

TYPED_TEST(RowsTest, AnyAlignmentIsReadAndWidenedExactly) {
  using T = TypeParam;
  const Matrix<T> x = UniformRowsOf<T>({.rows = 3, .cols = 5, .seed = 1});
  for (size_t shift = 0; shift < 9; ++shift) {
    std::string bytes(shift + sizeof(T) * 15, '\0');
    std::memcpy(bytes.data() + shift, x.data(), sizeof(T) * 15);
    RowsView rows = WireRows(x);
    rows.data = bytes.data() + shift;
    EXPECT_TRUE(CheckFinite(rows).ok());
    for (int64_t i = 0; i < 3; ++i) {
      std::vector<double> wide(5);
      rows.CopyRow(i, wide.data());
      for (int64_t j = 0; j < 5; ++j) EXPECT_EQ(wide[j], static_cast<double>(x(i, j)));
    }
    const RowsView tail = rows.Slice(1, 2);
    EXPECT_EQ(tail.rows, 2);
    std::vector<double> wide(5);
    tail.CopyRow(1, wide.data());
    EXPECT_EQ(wide[4], static_cast<double>(x(2, 4)));
  }
}

TEST(FloatTypeTest, NamesAndSizes) {
  EXPECT_EQ(FloatTypeName(FloatType::kFloat32), "float32");
  EXPECT_EQ(FloatTypeName(FloatType::kFloat64), "float64");
  EXPECT_EQ(FloatTypeBytes(FloatType::kFloat32), 4);
  EXPECT_EQ(FloatTypeBytes(FloatType::kFloat64), 8);
}

}  // namespace
}  // namespace phimap::testing
