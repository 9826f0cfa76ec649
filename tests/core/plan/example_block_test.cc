#include "core/plan/example_block.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

const std::vector<std::vector<double>> kBlockRows = {{0, 2, 0, -1}, {0, 0, 0, 0}, {5, 0, 0, 7}};

TEST(ExampleBlockTest, ABlockOfItsExamplesBytesIsTheSame) {
  for (const ExampleKind kind : {ExampleKind::kDense, ExampleKind::kSparse}) {
    ExampleBlock block(kind, 4);
    for (const std::vector<double>& row : kBlockRows) block.AddRow(row.data());
    ExampleBlock again(kind, 4);
    for (int64_t i = 0; i < block.rows(); ++i) {
      ASSERT_TRUE(ExampleBlock::CheckBytes(kind, 4, block.Bytes(i)).ok());
      again.AddBytes(block.Bytes(i));
    }
    EXPECT_EQ(block.Bytes(0).size(), kind == ExampleKind::kDense ? 32u : 24u);
    ASSERT_TRUE(CheckExamples(again.view()).ok());
    EXPECT_EQ(again.view().kind(), kind);
    ASSERT_EQ(again.view().rows(), 3);
    for (int64_t i = 0; i < 3; ++i) {
      std::vector<double> row(4);
      again.view().CopyRow(i, row.data());
      EXPECT_EQ(row, kBlockRows[static_cast<size_t>(i)]);
    }
  }
}

TEST(ExampleBlockTest, StringsStayWhereTheyAreWhenTheBlockMoves) {
  for (const ExampleKind kind : {ExampleKind::kText, ExampleKind::kBytes}) {
    ExampleBlock block(kind, 0);
    const std::vector<std::string> strings = {"", "a", std::string("\0\xff", 2)};
    for (const std::string& string : strings) block.AddString(string);
    const ExamplesView view = block.view();
    const ExampleBlock moved = std::move(block);
    EXPECT_EQ(view.kind(), kind);
    EXPECT_EQ(view.bytes(), 3);
    ASSERT_EQ(moved.rows(), 3);
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ((*view.strings())[i], strings[static_cast<size_t>(i)]);
      EXPECT_EQ(moved.Bytes(i), strings[static_cast<size_t>(i)]);
      EXPECT_TRUE(ExampleBlock::CheckBytes(kind, 0, moved.Bytes(i)).ok());
    }
  }
}

// Returns the bytes of a sparse example with these entries.
std::string Entries(const std::vector<int32_t>& columns, const std::vector<double>& values) {
  std::string bytes(reinterpret_cast<const char*>(columns.data()), columns.size() * 4);
  return bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * 8);
}

TEST(ExampleBlockTest, BytesThatAreNoExampleAreRefused) {
  const double infinite = std::numeric_limits<double>::infinity();
  const std::pair<std::string, const char*> kSparse[] = {
      {std::string(11, 'x'), "11 bytes"},
      {Entries({4}, {1}), "out of order or out of range"},
      {Entries({-1}, {1}), "out of order"},
      {Entries({2, 2}, {1, 1}), "out of order"},
      {Entries({3, 1}, {1, 1}), "out of order"},
      {Entries({0}, {infinite}), "not finite"},
  };
  for (const auto& [bytes, words] : kSparse) {
    const absl::Status status = ExampleBlock::CheckBytes(ExampleKind::kSparse, 4, bytes);
    EXPECT_NE(status.ToString().find(words), std::string::npos) << status;
  }
  EXPECT_TRUE(ExampleBlock::CheckBytes(ExampleKind::kSparse, 4, "").ok());
  EXPECT_TRUE(ExampleBlock::CheckBytes(ExampleKind::kSparse, 4, Entries({0, 3}, {1, 2})).ok());
  EXPECT_FALSE(ExampleBlock::CheckBytes(ExampleKind::kDense, 4, std::string(31, 'x')).ok());
}

}  // namespace
}  // namespace phimap::testing
