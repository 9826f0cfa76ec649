// Tests input that is compressed, split into several files, or written with other delimiters.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/arguments/input_rows.h"
#include "client/files/input_file.h"
#include "tests/client/temp_file.h"
#include "tests/support/matchers.h"

namespace phimap::cli {
namespace {

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string bytes(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = bytes.size();
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  bytes.resize(bytes.size() - stream.avail_out);
  deflateEnd(&stream);
  return bytes;
}

std::string Zstd(const std::string& text) {
  std::string bytes(ZSTD_compressBound(text.size()), '\0');
  bytes.resize(ZSTD_compress(bytes.data(), bytes.size(), text.data(), text.size(), 3));
  return bytes;
}

// Returns a CSV file that fills several buffers, and in which no two parts are the same.
std::string LongCsv(int rows) {
  std::string text = "a,b\n";
  for (int i = 0; i < rows; ++i) absl::StrAppend(&text, i, ",", (i * 7919) % 10'007, "\n");
  return text;
}

absl::StatusOr<std::string> ReadAllOf(InputFile& file, size_t capacity) {
  std::string all;
  std::vector<char> buffer(capacity);
  while (true) {
    absl::StatusOr<size_t> size = file.Read(buffer.data(), capacity);
    if (!size.ok()) return size.status();
    if (*size == 0) return all;
    all.append(buffer.data(), *size);
  }
}

class CompressedInputTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> ReadFile(const std::string& bytes, size_t capacity = 1000) {
    auto file = InputFile::Open(folder_.Write("rows", bytes));
    return ReadAllOf(**file, capacity);
  }
  TempFolder folder_;
};

TEST_F(CompressedInputTest, GzipAndZstdAreToldByTheirFirstBytesAndReadAsBefore) {
  const std::string text = LongCsv(100'000);
  const std::string half = text.substr(0, text.size() / 2);
  const std::string rest = text.substr(half.size());
  for (const std::string& bytes :
       {Gzip(text), Zstd(text), Gzip(half) + Gzip(rest), Zstd(half) + Zstd(rest),
        Gzip("") + Gzip(text), Zstd("") + Zstd(text), text}) {
    for (const size_t capacity : {1000, 256 << 10}) {
      const std::string read = ReadFile(bytes, capacity).value();
      EXPECT_TRUE(read == text) << read.size() << " of " << text.size();
    }
  }
  EXPECT_EQ(*ReadFile(Gzip(LongCsv(3)), 1), LongCsv(3));
  EXPECT_EQ(*ReadFile(Zstd(LongCsv(3)), 1), LongCsv(3));
}

TEST_F(CompressedInputTest, BytesThatOnlyBeginLikeACompressedFileStayAsTheyAre) {
  for (const std::string& text : {std::string(), std::string("a"), std::string("\x1f"),
                                  std::string("\x28\xb5\x2f"), std::string("(a,b)\n1,2\n")}) {
    EXPECT_EQ(*ReadFile(text), text);
  }
}

TEST_F(CompressedInputTest, ADamagedOrCutOffFileIsNamed) {
  const std::string text = LongCsv(1000);
  const struct {
    std::string bytes;
    const char* message;
  } cases[] = {
      {Gzip(text).substr(0, 500), "rows: expected a complete gzip file: it is cut off"},
      {Zstd(text).substr(0, 500), "rows: expected a complete zstd file: it is cut off"},
      {Gzip(text) + "more", "expected a complete gzip file: incorrect header check"},
      {Zstd(text) + "more", "expected a complete zstd file: "},
      {std::string("\x1f\x8b\x08\x00 damaged", 12), "expected a complete gzip file: "},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ReadFile(c.bytes).status(),
                testing::IsError(StatusCode::kInvalidArgument, _, _, HasSubstr(c.message)));
  }
}

TEST_F(CompressedInputTest, AFileCanBeReadAgainAndTellsTheShareOfItsBytes) {
  const std::string text = LongCsv(200'000);
  for (const std::string& bytes : {text, Gzip(text), Zstd(text)}) {
    auto file = *InputFile::Open(folder_.Write("rows", bytes));
    EXPECT_EQ(file->share_read(), 0);
    char buffer[100];
    ASSERT_TRUE(file->Read(buffer, sizeof(buffer)).ok());
    EXPECT_GT(*file->share_read(), 0);
    EXPECT_LE(*file->share_read(), 1);
    ASSERT_TRUE(file->Rewind().ok());
    EXPECT_EQ(file->share_read(), 0);
    EXPECT_TRUE(*ReadAllOf(*file, 4096) == text);
    EXPECT_EQ(file->share_read(), 1);
  }
}

TEST_F(CompressedInputTest, APipeMayBeCompressedToo) {
  const std::string path = folder_.Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const std::string text = LongCsv(50'000);
  const auto writer = std::async(std::launch::async, [&] {
    const int fd = open(path.c_str(), O_WRONLY);
    const std::string bytes = Gzip(text);
    // The magic bytes, by which the compression is recognized, arrive one by one.
    for (size_t i = 0; i < bytes.size();) {
      const ssize_t size = write(fd, bytes.data() + i, i < 4 ? 1 : bytes.size() - i);
      if (size < 0) break;
      i += size;
    }
    close(fd);
  });
  auto file = *InputFile::Open(path);
  EXPECT_EQ(file->share_read(), std::nullopt);
  EXPECT_TRUE(*ReadAllOf(*file, 1000) == text);
}

TEST(InputPathsTest, PatternsStandForTheFilesThatMatchInOrder) {
  TempFolder folder;
  for (const char* name : {"b.csv", "a.csv", "a10.csv", "c.npy", "x[1].csv", "x1.csv"}) {
    folder.Write(name, "");
  }
  const auto path = [&](const char* name) { return folder.Path(name); };
  EXPECT_THAT(*FilesNamed({path("c.npy"), path("[ab]*.csv"), "-"}),
              ElementsAre(path("c.npy"), path("a.csv"), path("a10.csv"), path("b.csv"), "-"));
  // If a file with exactly this name exists, the name is not treated as a pattern.
  EXPECT_THAT(*FilesNamed({path("x[1].csv")}), ElementsAre(path("x[1].csv")));
  EXPECT_THAT(*FilesNamed({path("none.csv")}), ElementsAre(path("none.csv")));
  EXPECT_THAT(FilesNamed({path("z*.csv")}).status().message(),
              HasSubstr(absl::StrCat("no file matches the pattern ", path("z*.csv"))));
  EXPECT_THAT(FilesNamed({"-", "-"}).status().message(), HasSubstr("given twice"));
}

struct AllRows {
  std::vector<double> values;
  std::vector<std::string> labels;
};

class InputRowsTest : public ::testing::Test {
 protected:
  // Reads the input in blocks of 2 rows. Returns all values, row after row, and the labels.
  absl::StatusOr<AllRows> Read(InputArguments input) {
    auto files = WithFiles(std::move(input));
    if (!files.ok()) return files.status();
    AllRows all;
    if (!files->choice.label.empty()) {
      auto labeled = OpenLabeledRows(*files, cancel_);
      if (!labeled.ok()) return labeled.status();
      absl::Status status = Append(**labeled, all);
      all.labels = (*labeled)->TakeLabels();
      return status.ok() ? absl::StatusOr<AllRows>(all) : status;
    }
    auto rows = OpenRows(*files, cancel_);
    if (!rows.ok()) return rows.status();
    absl::Status status = Append(**rows, all);
    return status.ok() ? absl::StatusOr<AllRows>(all) : status;
  }
  static absl::Status Append(client::RowSource& rows, AllRows& all) {
    while (true) {
      absl::StatusOr<client::ExampleBlock> block = rows.Next({.rows = 2});
      if (!block.ok() || block->empty()) return block.status();
      const client::RowBlock* dense = block->dense();
      for (int32_t i = 0; i < dense->rows; ++i) {
        for (int32_t j = 0; j < dense->columns; ++j) all.values.push_back(dense->At(i, j));
      }
    }
  }
  // Writes a NumPy file (format 1.0) with one row of two values. Returns its path.
  std::string Npy(const std::string& name, const std::string& descr, const std::string& values) {
    std::string dictionary =
        absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (1, 2), }\n");
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += std::string({static_cast<char>(dictionary.size()), '\0'});
    return folder_.Write(name, bytes + dictionary + values);
  }
  TempFolder folder_;
  client::CancelToken cancel_;
};

TEST_F(InputRowsTest, SeveralFilesAreOneStream) {
  const std::string one = folder_.Write("day-1.csv", "a,b,y\n1,2,u\n3,4,v\n5,6,u\n");
  const std::string two = folder_.Write("day-2.csv.gz", Gzip("a,b,y\n7,8,w\n"));
  const std::string none = folder_.Write("day-3.csv", "a,b,y\n");
  const std::string three = folder_.Write("day-4.csv.zst", Zstd("a,b,y\r\n9,10,v\r\n"));
  for (const std::vector<std::string>& paths : {std::vector<std::string>{one, two, none, three},
                                                std::vector<std::string>{folder_.Path("day-*")}}) {
    const absl::StatusOr<AllRows> all =
        Read({.paths = paths, .format = "csv", .choice = {.label = "y"}});
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_THAT(all->values, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
    EXPECT_THAT(all->labels, ElementsAre("u", "v", "u", "w", "v"));
  }
}

TEST_F(InputRowsTest, FilesWithOtherHeadersAreRefusedBeforeARowIsRead) {
  const std::string one = folder_.Write("one.csv", "a,b\nno number\n");
  const std::string two = folder_.Write("two.csv", "b,a\n1,2\n");
  EXPECT_THAT(Read({.paths = {one, two}}).status(),
              testing::IsError(StatusCode::kInvalidArgument, _, _,
                               absl::StrCat("the files of one stream must have the same header\n  ",
                                            one, " has a,b\n  ", two, " has b,a")));
}

TEST_F(InputRowsTest, FilesOfTwoFormatsOrTypesAreRefused) {
  const std::string csv = folder_.Write("one.csv", "a,b\n1,2\n");
  const std::string small = Npy("small.npy", "|i1", "\x01\xff");
  const std::string large = Npy("large.npy", "<i4", std::string(8, '\0'));
  EXPECT_THAT(Read({.paths = {csv, small}}).status().message(),
              HasSubstr("must have the same format"));
  EXPECT_THAT(Read({.paths = {small, large}}).status().message(),
              HasSubstr(absl::StrCat(small, " has float32\n  ", large, " has float64")));
  EXPECT_THAT(Read({.paths = {small, small}})->values, ElementsAre(1, -1, 1, -1));
}

TEST_F(InputRowsTest, RowsAreCountedOverAllFilesAndTheStreamCanBeReadAgain) {
  const std::string npy = Npy("rows.npy", "|u1", "\x03\x04");
  auto rows = *OpenRows(*WithFiles({.paths = {npy, npy, npy}}), cancel_);
  EXPECT_EQ(rows->row_count(), 3);
  ASSERT_TRUE(rows->CanRewind());
  for (int time = 0; time < 2; ++time) {
    AllRows all;
    ASSERT_TRUE(Append(*rows, all).ok());
    EXPECT_THAT(all.values, ElementsAre(3, 4, 3, 4, 3, 4));
    EXPECT_EQ(rows->share_read(), 1);
    ASSERT_TRUE(rows->Rewind().ok());
    EXPECT_EQ(rows->share_read(), 0);
  }
  rows->Interrupt();
  EXPECT_EQ(rows->Next({}).status().code(), StatusCode::kCancelled);
}

TEST_F(InputRowsTest, SparseFilesHaveTheColumnsOfTheWidest) {
  const std::string one = folder_.Write("one.svm", "1 1:2\n");
  const std::string two = folder_.Write("two.svm", "1 3:4\n-1 2:1\n");
  auto rows = *OpenRows(*WithFiles({.paths = {one, two}}), cancel_);
  EXPECT_EQ(rows->columns(), 3);
}

TEST_F(InputRowsTest, ADelimiterIsNamedOrIsThatOfTsv) {
  const std::string semicolons = folder_.Write("s.csv", "a;b\n1;2\n\"3\";4\n");
  const std::string tabs = folder_.Write("t.tsv", "a\tb\n1\t2\n3\t4\n");
  const std::string packed = folder_.Write("t.tsv.gz", Gzip("a\tb\n1\t2\n3\t4\n"));
  EXPECT_THAT(Read({.paths = {semicolons}, .delimiter = ";"})->values, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Read({.paths = {tabs}})->values, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Read({.paths = {packed}})->values, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Read({.paths = {tabs}, .format = "csv", .delimiter = "tab"})->values,
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Read({.paths = {semicolons}}).status().message(),
              HasSubstr("if the cells are separated by ;, use --delimiter=';'"));
  for (const char* wrong : {"1", "x", "-", ".", "\"", "\n", ";;", "\xe2"}) {
    EXPECT_THAT(Read({.paths = {semicolons}, .delimiter = wrong}).status().message(),
                HasSubstr("--delimiter: expected tab or one character"));
  }
  EXPECT_THAT(
      Read({.paths = {folder_.Write("r.svm", "1 1:2\n")}, .delimiter = ";"}).status().message(),
      HasSubstr("--delimiter is for CSV files"));
}

}  // namespace
}  // namespace phimap::cli
