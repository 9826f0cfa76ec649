// Tests blocks of examples of every kind: their contents, how they are split, and their encoding on
// the wire.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "client/cpp/calls.h"
#include "client/cpp/example_block.h"
#include "client/cpp/row_source.h"

namespace phimap::client {
namespace {

template <typename T>
std::vector<T> NumbersOf(const std::string& bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// Returns the rows [0 1.5 0 0], [0 0 0 0] and [2 0 0 -3].
SparseBlock Sparse() {
  const std::vector<int64_t> offsets = {0, 1, 1, 3};
  const std::vector<int32_t> columns = {1, 0, 3};
  const std::vector<double> values = {1.5, 2, -3};
  return MakeSparseBlock(offsets, columns, absl::Span<const double>(values), 4);
}

TEST(ExampleBlockTest, CountsWhatItHolds) {
  const ExampleBlock none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.bytes(), 0);
  const ExampleBlock dense = MakeRowBlock(std::vector<float>{1, 2, 3, 4}, 2);
  EXPECT_EQ(dense.rows(), 2);
  EXPECT_EQ(dense.columns(), 2);
  EXPECT_EQ(dense.bytes(), 16);
  const ExampleBlock sparse = Sparse();
  EXPECT_EQ(sparse.rows(), 3);
  EXPECT_EQ(sparse.columns(), 4);
  EXPECT_EQ(sparse.bytes(), 4 * 8 + 3 * 4 + 3 * 8);
  const ExampleBlock strings = StringBlock{.is_text = true, .values = {"ab", "", "c"}};
  EXPECT_EQ(strings.rows(), 3);
  EXPECT_EQ(strings.columns(), 0);
  EXPECT_EQ(strings.bytes(), 3);
}

TEST(ExampleBlockTest, ASliceOfSparseRowsHasOffsetsOfItsOwn) {
  const ExampleBlock slice = ExampleBlock(Sparse()).Slice(1, 2);
  ASSERT_NE(slice.sparse(), nullptr);
  EXPECT_EQ(NumbersOf<int64_t>(slice.sparse()->row_offsets_le), (std::vector<int64_t>{0, 0, 2}));
  EXPECT_EQ(NumbersOf<int32_t>(slice.sparse()->column_indices_le), (std::vector<int32_t>{0, 3}));
  EXPECT_EQ(NumbersOf<double>(slice.sparse()->values_le), (std::vector<double>{2, -3}));
  EXPECT_EQ(slice.columns(), 4);
  EXPECT_TRUE(ExampleBlock(Sparse()).Slice(3, 0).empty());
}

TEST(ExampleBlockTest, EveryKindIsItsOwnMessage) {
  v1::Examples examples;
  ToExamples(Sparse(), examples);
  ASSERT_TRUE(examples.has_sparse());
  EXPECT_EQ(examples.sparse().rows(), 3);
  EXPECT_EQ(examples.sparse().columns(), 4);
  EXPECT_EQ(examples.sparse().row_offsets_le(), Sparse().row_offsets_le);
  EXPECT_EQ(examples.sparse().column_indices_le(), Sparse().column_indices_le);
  EXPECT_EQ(examples.sparse().float64_le(), Sparse().values_le);
  examples.Clear();
  ToExamples(StringBlock{.is_text = true, .values = {"a", "bc"}}, examples);
  EXPECT_EQ(examples.text().values(1), "bc");
  examples.Clear();
  ToExamples(StringBlock{.is_text = false, .values = {std::string("\0\xff", 2)}}, examples);
  EXPECT_EQ(examples.bytes().values(0), std::string("\0\xff", 2));
}

TEST(MemoryRowSourceTest, YieldsTheSameRowsInBlocksOfAnySize) {
  const ExampleBlock all = Sparse();
  for (const BlockLimits& limits : {BlockLimits{.rows = 1}, BlockLimits{.rows = 2},
                                    BlockLimits{.rows = 9}, BlockLimits{.rows = 9, .bytes = 1}}) {
    MemoryRowSource source(Sparse());
    std::vector<double> values;
    int32_t rows = 0;
    for (int pass = 0; pass < 2; ++pass) {
      while (true) {
        const auto block = source.Next(limits).value();
        if (block.empty()) break;
        EXPECT_LE(block.rows(), limits.rows);
        rows += block.rows();
        const std::vector<double> more = NumbersOf<double>(block.sparse()->values_le);
        values.insert(values.end(), more.begin(), more.end());
      }
      ASSERT_TRUE(source.Rewind().ok());
    }
    EXPECT_EQ(rows, 6);
    EXPECT_EQ(values, (std::vector<double>{1.5, 2, -3, 1.5, 2, -3}));
  }
}

TEST(BlockLimitsTest, OneRowIsAlwaysTaken) {
  EXPECT_EQ((BlockLimits{.rows = 10, .bytes = 100}.RowsOf(30)), 3);
  EXPECT_EQ((BlockLimits{.rows = 10, .bytes = 100}.RowsOf(101)), 1);
  EXPECT_EQ((BlockLimits{.rows = 10, .bytes = 1000}.RowsOf(1)), 10);
}

}  // namespace
}  // namespace phimap::client
