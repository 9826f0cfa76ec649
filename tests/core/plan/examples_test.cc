#include "core/plan/examples.h"

#include <limits>
#include <string>
#include <vector>

#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/sparse_rows.h"

namespace phimap::testing {
namespace {

SparseRowsOf<float> ThreeRows() {
  SparseRowsOf<float> rows;
  rows.columns = 10;
  rows.offsets = {0, 2, 2, 5};
  rows.indices = {1, 9, 0, 4, 5};
  rows.values = {1, 2, 3, 4, 5};
  return rows;
}

TEST(ExamplesTest, SparseRowsAreReadAsTheirDenseForm) {
  const SparseRowsOf<float> rows = ThreeRows();
  const ExamplesView view = rows.view();
  EXPECT_EQ(view.rows(), 3);
  EXPECT_EQ(view.columns(), 10);
  EXPECT_EQ(view.bytes(), 4 * 8 + 5 * (4 + 4));
  ASSERT_TRUE(CheckExamples(view).ok());
  std::vector<double> row(10);
  const ExamplesView last = view.Slice(2, 1);
  last.CopyRow(0, row.data());
  EXPECT_EQ(row, (std::vector<double>{3, 0, 0, 0, 4, 5, 0, 0, 0, 0}));
  view.CopyRow(1, row.data());
  EXPECT_EQ(row, std::vector<double>(10, 0.0));
  EXPECT_EQ(last.sparse()->entries(), 3);
}

TEST(ExamplesTest, EachFaultOfSparseRowsIsNamedWithItsEntryAndRow) {
  struct Case {
    const char* what;
    void (*spoil)(SparseRowsOf<float>&);
    const char* reason;
    const char* field;
    const char* row;
  };
  const Case cases[] = {
      {"offsets fall", [](auto& r) { r.offsets[2] = 1; }, "OFFSETS_INVALID", "row_offsets[2]", "1"},
      {"an offset is negative", [](auto& r) { r.offsets[1] = -1; }, "OFFSETS_INVALID",
       "row_offsets[1]", "0"},
      {"an offset is beyond the entries", [](auto& r) { r.offsets[1] = 6; }, "OFFSETS_INVALID",
       "row_offsets[1]", "0"},
      {"an offset is huge", [](auto& r) { r.offsets[2] = std::numeric_limits<int64_t>::max(); },
       "OFFSETS_INVALID", "row_offsets[2]", "1"},
      {"a column is the number of columns", [](auto& r) { r.indices[1] = 10; },
       "COLUMN_INDEX_INVALID", "column_indices[1]", "0"},
      {"a column is negative", [](auto& r) { r.indices[2] = -1; }, "COLUMN_INDEX_INVALID",
       "column_indices[2]", "2"},
      {"a column comes twice", [](auto& r) { r.indices[4] = 4; }, "COLUMN_INDEX_INVALID",
       "column_indices[4]", "2"},
      {"columns fall", [](auto& r) { r.indices[3] = 6; }, "COLUMN_INDEX_INVALID",
       "column_indices[4]", "2"},
      {"a value is not a number",
       [](auto& r) { r.values[3] = std::numeric_limits<float>::quiet_NaN(); }, "VALUE_NOT_FINITE",
       "values[3]", "2"},
  };
  for (const Case& c : cases) {
    SparseRowsOf<float> rows = ThreeRows();
    c.spoil(rows);
    const absl::Status status = CheckExamples(rows.view());
    EXPECT_THAT(status, IsError(StatusCode::kInvalidArgument, c.reason, c.field)) << c.what;
    EXPECT_EQ(DetailOf(status)->metadata.at("row"), c.row) << c.what;
  }
}

// Uses random numbers as offsets and columns. Rows that pass the check must have the shape that
// they claim, and reading them must stay within their memory, which the sanitizer checks.
TEST(ExamplesTest, WhateverPassesCanBeReadSafely) {
  const RandomStream random(7, StreamId::kSelfCheck);
  uint64_t draw = 0;
  int passed = 0;
  for (int round = 0; round < 20000; ++round) {
    SparseRowsOf<float> rows = ThreeRows();
    const auto below = [&](int64_t n) {
      return static_cast<int64_t>(random.UniformBelow(draw++, static_cast<uint64_t>(n)));
    };
    rows.offsets[1 + below(2)] = below(9) - 2;
    if (round % 2 == 0) rows.indices[below(5)] = static_cast<int32_t>(below(14) - 2);
    const SparseRowsView view = rows.view();
    if (!CheckExamples(view).ok()) continue;
    ++passed;
    std::vector<double> row(10);
    for (int64_t i = 0; i < view.rows; ++i) view.CopyRow(i, row.data());
  }
  EXPECT_GT(passed, 1000);
}

TEST(ExamplesTest, StringsKnowTheirBytesAndAreRefusedWhenTooLong) {
  const std::vector<std::string> texts = {"a", "", std::string(1 << 20, 'x'), "bc"};
  std::vector<const std::string*> places;
  for (const std::string& text : texts) places.push_back(&text);
  const ExamplesView view =
      StringsView{ExampleKind::kText, places.data(), 4, 3 + (int64_t{1} << 20)};
  EXPECT_EQ(view.columns(), 0);
  EXPECT_EQ(view.kind_name(), "text");
  EXPECT_TRUE(CheckExamples(view).ok());
  const ExamplesView part = view.Slice(2, 2);
  EXPECT_EQ(part.bytes(), 2 + (1 << 20));
  EXPECT_EQ((*part.strings())[1], "bc");

  const std::string long_text((1 << 20) + 1, 'x');
  places[1] = &long_text;
  const absl::Status status = CheckExamples(view);
  EXPECT_EQ(ReasonOf(status), "FIELD_TOO_LONG");
  EXPECT_EQ(FieldOf(status), "values[1]");
}

TEST(ExamplesTest, TextIsUtf8AndBytesAreAnything) {
  const std::string good = "b\xc3\xa4r";
  const std::string bad = "b\xc3r";
  const std::string* const places[] = {&good, &bad};
  EXPECT_TRUE(CheckExamples(StringsView{ExampleKind::kBytes, places, 2, 7}).ok());
  EXPECT_TRUE(CheckExamples(StringsView{ExampleKind::kText, places, 1, 4}).ok());
  const absl::Status status = CheckExamples(StringsView{ExampleKind::kText, places, 2, 7});
  EXPECT_THAT(status, IsError(StatusCode::kInvalidArgument, "TEXT_NOT_UTF8", "values[1]"));
  EXPECT_EQ(DetailOf(status)->metadata.at("row"), "1");
}

}  // namespace
}  // namespace phimap::testing
