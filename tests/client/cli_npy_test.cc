#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/files/csv_reader.h"
#include "client/files/csv_writer.h"
#include "client/files/file_format.h"
#include "client/files/npy_file.h"
#include "tests/client/temp_file.h"
#include "tests/support/matchers.h"

namespace phimap::cli {
namespace {

// Returns the bytes of a NumPy file of format version `major` with this header dictionary and these
// values.
std::string NpyBytes(int major, std::string dictionary, const std::vector<float>& values) {
  dictionary += "\n";
  std::string bytes("\x93NUMPY", 6);
  bytes +=
      std::string({static_cast<char>(major), '\0', static_cast<char>(dictionary.size()), '\0'});
  if (major == 2) bytes += std::string(2, '\0');
  bytes += dictionary;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return bytes;
}

constexpr char kTwoByThree[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

class NpyTest : public ::testing::Test {
 protected:
  absl::StatusOr<client::RowBlock> ReadAll(const std::string& bytes) {
    auto file = InputFile::Open(folder_.Write("rows.npy", bytes));
    auto reader = NpyReader::Open(*std::move(file));
    if (!reader.ok()) return reader.status();
    auto block = (*reader)->NextRows(1000);
    if (!block.ok()) return block;
    if (auto end = (*reader)->NextRows(1000); !end.ok()) return end;
    return block;
  }
  TempFolder folder_;
};

TEST_F(NpyTest, ReadsVersions1And2) {
  for (const int major : {1, 2}) {
    const auto block = ReadAll(NpyBytes(major, kTwoByThree, {1, 2, 3, 4, 5, 6})).value();
    EXPECT_EQ(block.rows, 2);
    EXPECT_EQ(block.columns, 3);
    EXPECT_EQ(block.At(1, 0), 4);
  }
}

TEST_F(NpyTest, ErrorsSayWhatWasExpectedAndHowToConvert) {
  struct Case {
    std::string bytes;
    std::string message;
  };
  const std::vector<float> six = {1, 2, 3, 4, 5, 6};
  const auto with = [&](const std::string& dictionary) { return NpyBytes(1, dictionary, six); };
  const Case cases[] = {
      {"", "this is not a .npy file (its first bytes are not \\x93NUMPY)"},
      {"a,b,c\n1,2,3\n", "this is not a .npy file (its first bytes are not \\x93NUMPY)"},
      {NpyBytes(3, kTwoByThree, six), "expected .npy format 1.0 or 2.0, got 3.0"},
      {std::string("\x93NUMPY\x01\x00\x70\x00{", 11), "its header is cut off"},
      {std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12),
       "its header is cut off, or longer than 65536 bytes"},
      {with("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }"),
       "expected floats of 2, 4 or 8 bytes, integers or booleans, little-endian, got '>f4'; "
       "convert with array.astype('<f4') or array.astype('<f8')"},
      {with("{'descr': '<f4', 'fortran_order': 1, 'shape': (2, 3), }"),
       "its fortran_order is neither True nor False: 1"},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }"),
       "expected a 2-D array, rows × columns, got 1-D with 6 values; array.reshape(1, -1) makes "
       "it one row, array.reshape(-1, 1) one column"},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }"),
       "expected a 2-D array, rows × columns, got 3-D with shape (1, 2, 3)"},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (), }"),
       "expected a 2-D array, rows × columns, got 0-D with shape ()"},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0), }"),
       "expected 1 to 65536 columns, got 0"},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }"),
       "its shape is not made of sizes: (-2, 3)"},
      {with("{'descr': '<f4', 'fortran_order': False, }"), "its header has no 'shape'"},
      {with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3"),
       "the value of 'shape' in its header has no end"},
      {NpyBytes(1, kTwoByThree, {1, 2, 3, 4, 5}),
       "its header says 2 rows, but the file ends in row 1 (counted from 0)"},
      {NpyBytes(1, kTwoByThree, {1, 2, 3, 4, 5, 6, 7}),
       "its header says 2 rows, but more bytes follow them"},
      {NpyBytes(1, kTwoByThree, {1, 2, 3, 4, 5, std::nanf("")}),
       "expected finite numbers, got nan at array[1, 2]"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    EXPECT_THAT(ReadAll(c.bytes).status(), testing::IsError(StatusCode::kInvalidArgument, _, _,
                                                            EndsWith("rows.npy: " + c.message)));
  }
}

// The bytes of a vector, as they are stored in a NumPy file.
template <typename T>
std::string StoredBytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::string NpyOf(const std::string& descr, const std::string& order, int rows, int columns,
                  const std::string& values) {
  return NpyBytes(1,
                  absl::StrCat("{'descr': '", descr, "', 'fortran_order': ", order, ", 'shape': (",
                               rows, ", ", columns, "), }"),
                  {}) +
         values;
}

TEST_F(NpyTest, EveryTypeIsCastToTheSmallerFloatThatHoldsItsValues) {
  constexpr double kMost = 9007199254740992;  // 2^53
  const struct {
    const char* descr;
    std::string values;
    client::FloatType type;
    std::vector<double> expected;
  } cases[] = {
      {"<f2",
       StoredBytes<uint16_t>({0x3c00, 0xc000, 0x0001, 0x7bff, 0x83ff, 0x8000}),
       client::FloatType::kFloat32,
       {1, -2, 0x1p-24, 65'504, -0x3ffp-24, -0.0}},
      {"|b1", StoredBytes<uint8_t>({0, 1, 1, 0}), client::FloatType::kFloat32, {0, 1, 1, 0}},
      {"|i1", StoredBytes<int8_t>({-128, 127}), client::FloatType::kFloat32, {-128, 127}},
      {"|u1", StoredBytes<uint8_t>({0, 255}), client::FloatType::kFloat32, {0, 255}},
      {"<i2",
       StoredBytes<int16_t>({-32'768, 32'767}),
       client::FloatType::kFloat32,
       {-32'768, 32'767}},
      {"<u2", StoredBytes<uint16_t>({0, 65'535}), client::FloatType::kFloat32, {0, 65'535}},
      {"<i4",
       StoredBytes<int32_t>({INT32_MIN, INT32_MAX}),
       client::FloatType::kFloat64,
       {INT32_MIN, INT32_MAX}},
      {"<u4", StoredBytes<uint32_t>({0, UINT32_MAX}), client::FloatType::kFloat64, {0, UINT32_MAX}},
      {"<i8",
       StoredBytes<int64_t>({INT64_MIN, 1L << 53}),
       client::FloatType::kFloat64,
       {-0x1p63, kMost}},
      {"<u8", StoredBytes<uint64_t>({1UL << 63, 7}), client::FloatType::kFloat64, {0x1p63, 7}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.descr);
    const int columns = 2;
    const int rows = static_cast<int>(c.expected.size()) / columns;
    const auto block = ReadAll(NpyOf(c.descr, "False", rows, columns, c.values)).value();
    EXPECT_EQ(block.type, c.type);
    for (int i = 0; i < rows * columns; ++i) {
      EXPECT_EQ(block.At(i / columns, i % columns), c.expected[i]) << i;
    }
  }
}

TEST_F(NpyTest, AnIntegerThatFloat64DoesNotHoldIsNamedWithItsPlace) {
  const struct {
    const char* descr;
    std::string values;
    const char* number;
  } cases[] = {
      {"<i8", StoredBytes<int64_t>({1, 2, 3, (1L << 53) + 1}), "9007199254740993"},
      {"<i8", StoredBytes<int64_t>({1, 2, 3, -(1L << 53) - 1}), "-9007199254740993"},
      {"<i8", StoredBytes<int64_t>({1, 2, 3, INT64_MAX}), "9223372036854775807"},
      {"<u8", StoredBytes<uint64_t>({1, 2, 3, UINT64_MAX}), "18446744073709551615"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ReadAll(NpyOf(c.descr, "False", 2, 2, c.values)).status(),
                testing::IsError(StatusCode::kInvalidArgument, _, _,
                                 HasSubstr(absl::StrCat(
                                     "the integer ", c.number,
                                     " at array[1, 1] cannot be represented exactly in float64"))));
  }
  EXPECT_THAT(
      ReadAll(NpyOf("<f2", "False", 1, 2, StoredBytes<uint16_t>({0, 0x7c00}))).status().message(),
      HasSubstr("got inf at array[0, 1]"));
}

TEST_F(NpyTest, FortranOrderGivesTheRowsOfCOrder) {
  // The reader converts such a file in stripes of 16 MiB. This file has several full stripes, and a
  // last one that is not full.
  constexpr int kRows = 2'100'001;
  constexpr int kColumns = 3;
  std::vector<float> by_row(int64_t{kRows} * kColumns);
  std::vector<float> by_column(by_row.size());
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) {
      by_row[int64_t{i} * kColumns + j] = by_column[int64_t{j} * kRows + i] =
          static_cast<float>(i) + static_cast<float>(j) / 4;
    }
  }
  const std::string path =
      folder_.Write("f.npy", NpyOf("<f4", "True", kRows, kColumns, StoredBytes(by_column)));
  auto reader = NpyReader::Open(*InputFile::Open(path)).value();
  for (int time = 0; time < 2; ++time) {
    std::string values;
    while (true) {
      const auto block = reader->NextRows(65'536).value();
      if (block.empty()) break;
      values += block.values_le;
    }
    EXPECT_TRUE(values == StoredBytes(by_row));
    ASSERT_TRUE(reader->Rewind().ok());
  }
}

TEST_F(NpyTest, FortranOrderThatCannotBeReadIsNamed) {
  const std::vector<float> six = {1, 2, 3, 4, 5, 6};
  EXPECT_THAT(ReadAll(NpyOf("<f4", "True", 2, 4, StoredBytes(six))).status().message(),
              HasSubstr("4 columns of 2 values, but the file ends in column 3"));
  EXPECT_THAT(ReadAll(NpyOf("<f4", "True", 2, 2, StoredBytes(six))).status().message(),
              HasSubstr("but more bytes follow"));
  const std::string path = folder_.Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const auto writer = std::async(std::launch::async, [&] {
    std::ofstream(path, std::ios::binary) << NpyOf("<f4", "True", 2, 3, StoredBytes(six));
  });
  EXPECT_THAT(NpyReader::Open(*InputFile::Open(path)).status().message(),
              HasSubstr("column by column (Fortran order), but a compressed file can only be"));
}

TEST_F(NpyTest, WriterPatchesTheRowCountAndTheReaderGetsTheSameBits) {
  auto file = OutputFile::Open(folder_.Path("out.npy"));
  auto writer = NpyWriter::Open(*std::move(file), std::nullopt).value();
  const std::vector<double> first = {1.0 / 3, -0.0};
  const std::vector<double> second = {1e300, 5e-324, 2, 3};
  ASSERT_TRUE(writer->Append(client::MakeRowBlock(absl::Span<const double>(first), 2)).ok());
  ASSERT_TRUE(writer->Append(client::MakeRowBlock(absl::Span<const double>(second), 2)).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("out.npy")));
  ASSERT_TRUE(writer->Finish().ok());
  const std::string bytes = folder_.Read("out.npy");
  EXPECT_EQ(bytes.size(), 128 + 6 * 8);
  const auto block = ReadAll(bytes).value();
  EXPECT_EQ(block.rows, 3);
  EXPECT_EQ(block.values_le, bytes.substr(128));
  EXPECT_EQ(folder_.FileCount(), 2);  // only out.npy and rows.npy, no temporary file
}

TEST_F(NpyTest, HeaderHasRoomForTheLargestShape) {
  const std::string header = NpyHeaderBytes(false, std::numeric_limits<int64_t>::max(), 65'536);
  EXPECT_EQ(header.size(), 128);
  EXPECT_EQ(header.back(), '\n');
}

TEST_F(NpyTest, PipeIsRefusedUnlessTheRowCountIsKnown) {
  const std::string device = "/dev/null";  // not a regular file, just as a pipe
  EXPECT_THAT(OpenWriter(device, OutputFormat::kNpy, std::nullopt).status().message(),
              HasSubstr("a pipe cannot go back"));
  EXPECT_TRUE(OpenWriter(device, OutputFormat::kNpy, 3).ok());
  EXPECT_TRUE(OpenWriter(device, OutputFormat::kCsv, std::nullopt).ok());
}

TEST(CsvWriterTest, WritesTheShortestTextThatReadsBackTheSame) {
  TempFolder folder;
  auto writer = OpenWriter(folder.Path("out.csv"), OutputFormat::kCsv, std::nullopt).value();
  const std::vector<float> values = {0.1f, 1.0f / 3, -0.0f, 1e-38f};
  ASSERT_TRUE(writer->Append(client::MakeRowBlock(absl::Span<const float>(values), 2)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(folder.Read("out.csv"), "f0,f1\n0.1,0.33333334\n-0,1e-38\n");
  auto rows = CsvReader::Open(*InputFile::Open(folder.Path("out.csv")), "");
  const auto block = (*rows)->NextRows(10).value();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(static_cast<float>(block.At(i / 2, i % 2)), values[i]);
  }
}

TEST(OutputFileTest, WithoutCommitTheOldFileStaysAndNothingElseIsLeft) {
  TempFolder folder;
  folder.Write("out.csv", "old");
  {
    auto file = OutputFile::Open(folder.Path("out.csv")).value();
    ASSERT_TRUE(file->Append("half of the new").ok());
  }
  EXPECT_EQ(folder.Read("out.csv"), "old");
  EXPECT_EQ(folder.FileCount(), 1);
}

TEST(OutputFileTest, CommitReplacesWhatALinkPointsTo) {
  TempFolder folder;
  folder.Write("real.csv", "old");
  std::filesystem::create_symlink(folder.Path("real.csv"), folder.Path("link.csv"));
  auto file = OutputFile::Open(folder.Path("link.csv"));
  ASSERT_TRUE((*file)->Append("new").ok());
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_EQ(folder.Read("real.csv"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.Path("link.csv")));
}

TEST(OutputFileTest, SaysWhyAFileCannotBeWritten) {
  TempFolder folder;
  EXPECT_THAT(OutputFile::Open(folder.Path("none/out.csv")).status().message(),
              HasSubstr("No such file or directory"));
}

TEST(FileFormatTest, FollowsTheExtensionUnlessItIsNamed) {
  EXPECT_EQ(*FormatOf("a.csv", "", "--format"), FileFormat::kCsv);
  EXPECT_EQ(*FormatOf("a.NPY", "", "--format"), FileFormat::kNpy);
  EXPECT_EQ(*FormatOf("a.csv", "npy", "--format"), FileFormat::kNpy);
  EXPECT_EQ(*FormatOf("-", "csv", "--format"), FileFormat::kCsv);
  EXPECT_EQ(FormatOf("-", "", "--format").status().message(),
            "the format of '-' cannot be told from its name; use --format=csv or --format=npy");
  EXPECT_EQ(*FormatOf("a.svmlight", "", "--format"), FileFormat::kSvmlight);
  EXPECT_EQ(*FormatOf("a.libsvm", "", "--format"), FileFormat::kSvmlight);
  EXPECT_EQ(*FormatOf("-", "svmlight", "--format"), FileFormat::kSvmlight);
  EXPECT_EQ(*FormatOf("a.txt", "", "--format"), FileFormat::kText);
  EXPECT_FALSE(FormatOf("a.doc", "", "--format").ok());
}

}  // namespace
}  // namespace phimap::cli
