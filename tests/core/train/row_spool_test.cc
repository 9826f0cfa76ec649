#include "core/train/row_spool.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// Rows of 0 to some thousand bytes, with every byte in them.
PartRow RowOf(int64_t i) {
  PartRow row{.content = {},
              .label = static_cast<double>(i) / 7,
              .weight = 1.0 + 0.25 * static_cast<double>(i % 5)};
  for (int64_t k = 0; k < (i * 37) % 3000; ++k) row.content.push_back(static_cast<char>(i + k));
  return row;
}

std::vector<PartRow> ReadAll(RowSpool& spool, int64_t rows_at_a_time) {
  std::vector<PartRow> all;
  const absl::Status read = spool.Read(rows_at_a_time, [&](const std::vector<PartRow>& rows) {
    EXPECT_LE(std::ssize(rows), rows_at_a_time);
    EXPECT_FALSE(rows.empty());
    all.insert(all.end(), rows.begin(), rows.end());
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
  return all;
}

// 3,000 rows of 1,500 bytes on average are several buffers; 10 rows are a part of one.
TEST(RowSpoolTest, RowsComeBackInOrderAsOftenAsTheyAreRead) {
  for (const int64_t count : {0, 1, 10, 3000}) {
    SpoolSpace space(::testing::TempDir(), int64_t{1} << 30);
    RowSpool spool(space);
    std::vector<PartRow> rows;
    int64_t bytes = 0;
    for (int64_t i = 0; i < count; ++i) {
      rows.push_back(RowOf(i));
      bytes += 20 + std::ssize(rows.back().content);
      ASSERT_TRUE(spool.Add(rows.back()).ok());
    }
    EXPECT_EQ(spool.rows(), count);
    EXPECT_EQ(spool.bytes(), bytes);
    EXPECT_EQ(ReadAll(spool, 256), rows);
    EXPECT_EQ(ReadAll(spool, 7), rows);
  }
}

TEST(RowSpoolTest, AllSpoolsOfASpaceTogetherStayWithinItsLimit) {
  constexpr int64_t kLimit = 5 << 20;
  SpoolSpace space(::testing::TempDir(), kLimit);
  const PartRow row{.content = std::string(100'000, 'x'), .label = 0, .weight = 1};
  {
    RowSpool first(space);
    RowSpool second(space);
    absl::Status added;
    for (int i = 0; i < 100 && added.ok(); ++i) {
      added = first.Add(row);
      if (added.ok()) added = second.Add(row);
    }
    EXPECT_THAT(added, IsError(absl::StatusCode::kResourceExhausted, "TRAINING_DISK_FULL"));
    EXPECT_LE(space.used_bytes(), kLimit);
    EXPECT_GT(space.used_bytes(), kLimit / 2);
  }
  EXPECT_EQ(space.used_bytes(), 0);
  RowSpool third(space);
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(third.Add(row).ok());
}

TEST(RowSpoolTest, AFolderThatIsMissingIsNamed) {
  SpoolSpace space("/no/such/folder", int64_t{1} << 30);
  RowSpool spool(space);
  const absl::Status added =
      spool.Add({.content = std::string(2 << 20, 'x'), .label = 0, .weight = 1});
  EXPECT_THAT(added, IsError(absl::StatusCode::kUnavailable, "FILE_IO_FAILED"));
  EXPECT_THAT(added.message(), ::testing::HasSubstr("/no/such/folder"));
  EXPECT_EQ(space.used_bytes(), 0);
}

TEST(RowSpoolTest, AnErrorOfTheReaderEndsTheReading) {
  SpoolSpace space(::testing::TempDir(), int64_t{1} << 30);
  RowSpool spool(space);
  for (int64_t i = 0; i < 100; ++i) ASSERT_TRUE(spool.Add(RowOf(i)).ok());
  int calls = 0;
  EXPECT_EQ(spool.Read(10,
                       [&](const std::vector<PartRow>&) {
                         return ++calls == 3 ? absl::CancelledError("stop") : absl::OkStatus();
                       }),
            absl::CancelledError("stop"));
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace phimap::testing
