#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/csv_reader.h"
#include "client/cli/csv_writer.h"
#include "client/cli/file_format.h"
#include "client/cli/npy_reader.h"
#include "client/cli/npy_writer.h"
#include "tests/client/temp_file.h"

namespace phimap::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// A version `major` file of this dictionary and these values.
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

class NpyTest : public testing::Test {
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
    const auto block = ReadAll(NpyBytes(major, kTwoByThree, {1, 2, 3, 4, 5, 6}));
    ASSERT_TRUE(block.ok()) << block.status();
    EXPECT_EQ(block->rows, 2);
    EXPECT_EQ(block->columns, 3);
    EXPECT_EQ(block->At(1, 0), 4);
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
      {with("{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }"),
       "expected values of type '<f4' or '<f8', got '<i8'; convert with array.astype('<f4') or "
       "array.astype('<f8')"},
      {with("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }"),
       "expected values row by row (C order), got column by column (Fortran order); convert with "
       "numpy.ascontiguousarray(array)"},
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
    const absl::Status status = ReadAll(c.bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), EndsWith("rows.npy: " + c.message));
  }
}

TEST_F(NpyTest, WriterPatchesTheRowCountAndTheReaderGetsTheSameBits) {
  auto file = OutputFile::Open(folder_.Path("out.npy"));
  auto writer = NpyWriter::Open(*std::move(file), std::nullopt);
  ASSERT_TRUE(writer.ok());
  const std::vector<double> first = {1.0 / 3, -0.0};
  const std::vector<double> second = {1e300, 5e-324, 2, 3};
  ASSERT_TRUE((*writer)->Append(client::MakeRowBlock(absl::Span<const double>(first), 2)).ok());
  ASSERT_TRUE((*writer)->Append(client::MakeRowBlock(absl::Span<const double>(second), 2)).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("out.npy")));
  ASSERT_TRUE((*writer)->Finish().ok());
  const std::string bytes = folder_.Read("out.npy");
  EXPECT_EQ(bytes.size(), 128 + 6 * 8);
  const auto block = ReadAll(bytes);
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_EQ(block->rows, 3);
  EXPECT_EQ(block->values_le, bytes.substr(128));
  EXPECT_EQ(folder_.FileCount(), 2);  // out.npy and rows.npy: no temporary file.
}

TEST_F(NpyTest, HeaderHasRoomForTheLargestShape) {
  const std::string header =
      NpyHeaderBytes(client::FloatType::kFloat64, std::numeric_limits<int64_t>::max(), 65'536);
  EXPECT_EQ(header.size(), 128);
  EXPECT_EQ(header.back(), '\n');
}

TEST_F(NpyTest, PipeIsRefusedUnlessTheRowCountIsKnown) {
  const std::string device = "/dev/null";  // Not a regular file, as a pipe.
  EXPECT_THAT(OpenWriter(device, FileFormat::kNpy, std::nullopt).status().message(),
              HasSubstr("a pipe cannot go back"));
  EXPECT_TRUE(OpenWriter(device, FileFormat::kNpy, 3).ok());
  EXPECT_TRUE(OpenWriter(device, FileFormat::kCsv, std::nullopt).ok());
}

TEST(CsvWriterTest, WritesTheShortestTextThatReadsBackTheSame) {
  TempFolder folder;
  auto writer = OpenWriter(folder.Path("out.csv"), FileFormat::kCsv, std::nullopt);
  ASSERT_TRUE(writer.ok());
  const std::vector<float> values = {0.1f, 1.0f / 3, -0.0f, 1e-38f};
  ASSERT_TRUE((*writer)->Append(client::MakeRowBlock(absl::Span<const float>(values), 2)).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_EQ(folder.Read("out.csv"), "f0,f1\n0.1,0.33333334\n-0,1e-38\n");
  auto rows = CsvReader::Open(*InputFile::Open(folder.Path("out.csv")), "");
  const auto block = (*rows)->NextRows(10);
  ASSERT_TRUE(block.ok());
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(static_cast<float>(block->At(i / 2, i % 2)), values[i]);
  }
}

TEST(OutputFileTest, WithoutCommitTheOldFileStaysAndNothingElseIsLeft) {
  TempFolder folder;
  folder.Write("out.csv", "old");
  {
    auto file = OutputFile::Open(folder.Path("out.csv"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append("half of the new").ok());
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
            "the format of '-' is not known from its name; say --format=csv or --format=npy");
  EXPECT_EQ(*FormatOf("a.svmlight", "", "--format"), FileFormat::kSvmlight);
  EXPECT_EQ(*FormatOf("a.libsvm", "", "--format"), FileFormat::kSvmlight);
  EXPECT_EQ(*FormatOf("-", "svmlight", "--format"), FileFormat::kSvmlight);
  EXPECT_EQ(*FormatOf("a.txt", "", "--format"), FileFormat::kText);
  EXPECT_FALSE(FormatOf("a.doc", "", "--format").ok());
}

}  // namespace
}  // namespace phimap::cli
