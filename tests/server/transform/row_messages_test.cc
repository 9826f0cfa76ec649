#include "server/transform/row_messages.h"

#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

TEST(ExamplesFromProtoTest, ViewsTheMessageWithoutACopy) {
  v1::Examples examples;
  v1::DenseRows& dense = *examples.mutable_dense();
  dense.set_rows(2);
  dense.set_columns(3);
  dense.set_float32_le(std::string(24, '\0'));
  EXPECT_EQ(ExamplesFromProto(examples)->dense()->data, dense.float32_le().data());
  EXPECT_EQ(ExamplesFromProto(examples)->dense()->type, FloatType::kFloat32);
  dense.set_float64_le(std::string(48, '\0'));
  EXPECT_EQ(ExamplesFromProto(examples)->dense()->data, dense.float64_le().data());
  EXPECT_EQ(ExamplesFromProto(examples)->dense()->type, FloatType::kFloat64);
  for (int i = 0; i < 6; ++i) dense.mutable_numbers()->add_values(i);
  const ExamplesView block = *ExamplesFromProto(examples);
  const RowsView& rows = *block.dense();
  EXPECT_EQ(rows.data, reinterpret_cast<const char*>(dense.numbers().values().data()));
  double row[3];
  rows.CopyRow(1, row);
  EXPECT_EQ(row[2], 5);
}

}  // namespace
}  // namespace phimap::testing
