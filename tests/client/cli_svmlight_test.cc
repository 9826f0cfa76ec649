// Tests sparse rows from svmlight files, and the errors for files in other formats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/files/input_file.h"
#include "client/files/svmlight_reader.h"
#include "tests/client/temp_file.h"
#include "tests/support/matchers.h"

namespace phimap::cli {
namespace {

// The numbers of each row, including zeros.
using Dense = std::vector<std::vector<double>>;

template <typename T>
T At(const std::string& bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

void Append(const client::SparseBlock& block, Dense& rows) {
  for (int32_t i = 0; i < block.rows(); ++i) {
    std::vector<double> row(static_cast<size_t>(block.columns));
    const int64_t end = At<int64_t>(block.row_offsets_le, i + 1);
    for (int64_t e = At<int64_t>(block.row_offsets_le, i); e < end; ++e) {
      row[At<int32_t>(block.column_indices_le, e)] = At<double>(block.values_le, e);
    }
    rows.push_back(std::move(row));
  }
}

absl::StatusOr<Dense> ReadAll(SvmlightReader& reader, const client::BlockLimits& limits) {
  Dense rows;
  while (true) {
    auto block = reader.Next(limits);
    if (!block.ok()) return block.status();
    if (block->empty()) return rows;
    Append(*block->sparse(), rows);
  }
}

class SvmlightReaderTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<SvmlightReader>> Open(const std::string& text,
                                                       const SvmlightOptions& options = {}) {
    auto file = InputFile::Open(folder_.Write("rows.svmlight", text));
    if (!file.ok()) return file.status();
    return SvmlightReader::Open(*std::move(file), options, cancel_);
  }
  absl::StatusOr<Dense> Read(const std::string& text, const SvmlightOptions& options = {}) {
    auto reader = Open(text, options);
    if (!reader.ok()) return reader.status();
    return ReadAll(**reader, {.rows = 2});
  }
  std::string ErrorOf(const std::string& text, const SvmlightOptions& options = {.columns = 9}) {
    const auto rows = Read(text, options);
    EXPECT_EQ(rows.status().code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(rows.status().message());
  }

  TempFolder folder_;
  client::CancelToken cancel_;
};

TEST_F(SvmlightReaderTest, ReadsEveryFormOfTheFormat) {
  const auto rows = Read(
                        "\xEF\xBB\xBF# a comment\n"
                        "+1 1:0.5 3:-2e-3\n\n-1 qid:7 2:+4\t3:1 # why\r\n"
                        "0\n  2:1")
                        .value();
  EXPECT_THAT(rows, ElementsAre(ElementsAre(0.5, 0, -2e-3), ElementsAre(0, 4, 1),
                                ElementsAre(0, 0, 0), ElementsAre(0, 1, 0)));
}

TEST_F(SvmlightReaderTest, ColumnsAreTheLargestIndexUnlessGiven) {
  EXPECT_EQ((*Open("1 7:1\n1 2:1\n"))->columns(), 7);
  EXPECT_EQ((*Open("1 7:1\n", {.zero_based = true}))->columns(), 8);
  EXPECT_EQ((*Open("1 7:1\n", {.columns = 20}))->columns(), 20);
  EXPECT_THAT(ErrorOf("1\n2\n", {}), HasSubstr("no row has an entry INDEX:VALUE; if that is right, "
                                               "state the number of columns with --columns"));
}

TEST_F(SvmlightReaderTest, LabelsAreKeptInOneWritingOfEachNumber) {
  auto reader =
      *Open("+1 1:1\n1.0 1:1\n-1 1:1\n-0 1:1\nspam 1:1\n0.1 1:1\n1,3 1:1\n2147483647 1:1\n");
  reader->KeepLabels();
  ASSERT_TRUE(ReadAll(*reader, {}).ok());
  EXPECT_THAT(reader->TakeLabels(),
              ElementsAre("1", "1", "-1", "0", "spam", "0.1", "1,3", "2147483647"));
  EXPECT_TRUE(reader->TakeLabels().empty());
}

TEST_F(SvmlightReaderTest, ARowWithoutItsLabelIsAnErrorOnlyWhereLabelsAreWanted) {
  auto reader = *Open("1 1:1\n2:1 3:4\n");
  const auto rows = ReadAll(*reader, {}).value();
  EXPECT_THAT(rows, ElementsAre(ElementsAre(1, 0, 0), ElementsAre(0, 1, 4)));
  ASSERT_TRUE(reader->Rewind().ok());
  reader->KeepLabels();
  EXPECT_THAT(ReadAll(*reader, {}).status().message(),
              HasSubstr("line 2: expected a label before the entries, got '2:1'"));
}

TEST_F(SvmlightReaderTest, LabelsAreTextInUtf8) {
  auto reader = *Open("\xc3\xa9 1:1\ncaf\xe9 1:1\n");
  reader->KeepLabels();
  EXPECT_THAT(ReadAll(*reader, {}).status().message(),
              HasSubstr("line 2: expected text in UTF-8 for a label"));
}

TEST_F(SvmlightReaderTest, ErrorsNameTheLineWhatWasExpectedAndWhatCame) {
  EXPECT_THAT(ErrorOf("1 1:1\n1 2:x\n"),
              HasSubstr("rows.svmlight, line 2: in '2:x': expected a number, got 'x'"));
  EXPECT_THAT(ErrorOf("1 1:nan\n"), HasSubstr("expected a finite number, got 'nan'"));
  EXPECT_THAT(ErrorOf("1 1:1e999\n"), HasSubstr("expected a number in the range of float64"));
  EXPECT_THAT(ErrorOf("1 3\n"), HasSubstr("expected INDEX:VALUE, got '3'"));
  EXPECT_THAT(ErrorOf("1 a:3\n"), HasSubstr("with a whole number for INDEX, got 'a'"));
  EXPECT_THAT(ErrorOf("1 99999999999999999999:3\n"), HasSubstr("with a whole number for INDEX"));
  EXPECT_THAT(ErrorOf("1 3:1 2:1\n"),
              HasSubstr("indices must increase within a row; got 2 after 3"));
  EXPECT_THAT(ErrorOf("1 3:1 3:1\n"), HasSubstr("got 3 after 3"));
  EXPECT_THAT(ErrorOf("1 0:1\n"), HasSubstr("indices begin with 1, got 0; if the file's indices "
                                            "begin with 0, use --zero-based"));
  EXPECT_THAT(ErrorOf("1 -1:1\n", {.columns = 9, .zero_based = true}),
              HasSubstr("indices begin with 0, got -1"));
  EXPECT_THAT(ErrorOf("1 10:1\n"),
              HasSubstr("index 10 is too large; the largest index of 9 columns is 9"));
  EXPECT_THAT(ErrorOf("1 9:1\n", {.columns = 9, .zero_based = true}),
              HasSubstr("index 9 is too large; the largest index of 9 columns is 8"));
  EXPECT_THAT(ErrorOf("1 70000:1\n", {}), HasSubstr("the largest index of 65536 columns is 65536"));
}

TEST_F(SvmlightReaderTest, RowsAreTheSameInBlocksOfAnySizeAndAfterARewind) {
  std::mt19937_64 random(3);
  std::bernoulli_distribution named(0.3);
  std::string text;
  Dense expected;
  for (int i = 0; i < 50; ++i) {
    absl::StrAppend(&text, i % 3);
    std::vector<double> row(12);
    for (int j = 0; j < 12; ++j) {
      if (!named(random)) continue;
      row[j] = static_cast<double>(random() % 1000) / 8;
      absl::StrAppend(&text, " ", j + 1, ":", row[j]);
    }
    absl::StrAppend(&text, "\n");
    expected.push_back(row);
  }
  auto reader = *Open(text, {.columns = 12});
  for (const client::BlockLimits& limits :
       {client::BlockLimits{.rows = 1}, client::BlockLimits{.rows = 7}, client::BlockLimits{},
        client::BlockLimits{.rows = 99, .bytes = 100}}) {
    ASSERT_TRUE(reader->Rewind().ok());
    const auto rows = ReadAll(*reader, limits).value();
    EXPECT_EQ(rows, expected);
  }
}

TEST_F(SvmlightReaderTest, ABlockHoldsAboutAsManyBytesAsItMay) {
  std::string text;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&text, "1 1:1 2:2 3:3\n");
  auto reader = *Open(text);
  const auto block = reader->Next({.bytes = 1000}).value();
  // The block still contains the row with which it reaches the limit.
  EXPECT_GE(block.bytes(), 1000 - 8);
  EXPECT_LE(block.bytes(), 1000 + 8 + 3 * 12 + 8);
}

TEST_F(SvmlightReaderTest, AnInputThatIsReadOnceNeedsItsColumns) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  auto file = InputFile::Open(absl::StrCat("/dev/fd/", ends[0])).value();
  EXPECT_THAT(SvmlightReader::Open(std::move(file), {}, cancel_).status().message(),
              HasSubstr("can be read only once"));
  close(ends[0]);
  close(ends[1]);
}

TEST_F(SvmlightReaderTest, ACancelEndsTheFirstReading) {
  cancel_.Cancel();
  const auto reader = Open("1 1:1\n");
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kCancelled) << reader.status();
}

}  // namespace
}  // namespace phimap::cli
