#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/files/csv_reader.h"
#include "tests/client/temp_file.h"
#include "tests/support/matchers.h"

namespace phimap::cli {
namespace {

class CsvReaderTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<CsvReader>> Open(const std::string& text,
                                                  const std::string& label = "") {
    auto file = InputFile::Open(folder_.Write("rows.csv", text));
    if (!file.ok()) return file.status();
    return CsvReader::Open(*std::move(file), label);
  }
  // Reads a file that contains `text`, in blocks of 2 rows. Returns all of its values, row after
  // row.
  absl::StatusOr<std::vector<double>> ReadAll(const std::string& text,
                                              const std::string& label = "") {
    auto reader = Open(text, label);
    if (!reader.ok()) return reader.status();
    std::vector<double> values;
    while (true) {
      absl::StatusOr<client::RowBlock> block = (*reader)->NextRows(2);
      if (!block.ok()) return block.status();
      if (block->empty()) return values;
      for (int32_t i = 0; i < block->rows; ++i) {
        for (int32_t j = 0; j < block->columns; ++j) values.push_back(block->At(i, j));
      }
    }
  }
  TempFolder folder_;
};

TEST_F(CsvReaderTest, ReadsEveryFormOfTheFormat) {
  for (const std::string text : {
           "a,b\n1,2\n3,4\n",
           "a,b\n1,2\n3,4",          // no newline at the end of the file
           "a,b\r\n1,2\r\n3,4\r\n",  // lines that end with CRLF
           "\xEF\xBB\xBF"
           "a,b\n1,2\n3,4\n",          // a byte order mark
           "a,b\n1,2\n3,4\n\n\r\n\n",  // blank lines at the end
           "\"a\",\"b\n,\"\"\"\n\"1\",2\n3,\"4\"\n",
           "a,b\n +1.0 ,2e0\n3,4\n",
       }) {
    SCOPED_TRACE(text);
    const auto values = ReadAll(text).value();
    EXPECT_THAT(values, ElementsAre(1, 2, 3, 4));
  }
}

TEST_F(CsvReaderTest, LabelColumnIsLeftOutAndKept) {
  auto reader = Open("x,class,y\n1,\"A, or B\",2\n3,C,4\n", "class").value();
  reader->KeepLabels();
  EXPECT_THAT(reader->column_names(), ElementsAre("x", "y"));
  const auto block = reader->NextRows(10).value();
  EXPECT_EQ(block.rows, 2);
  EXPECT_EQ(block.columns, 2);
  EXPECT_EQ(block.At(1, 1), 4);
  EXPECT_THAT(reader->TakeLabels(), ElementsAre("A, or B", "C"));
}

TEST_F(CsvReaderTest, WeightsGroupsAndPartsAreKeptAndNoInputs) {
  const auto open = [&](const std::string& text) {
    auto file = InputFile::Open(folder_.Write("known.csv", text)).value();
    ColumnChoice choice{.label = "class"};
    choice.weights = "w";
    choice.groups = "who";
    choice.parts = "use";
    auto reader = CsvReader::Open(std::move(file), choice, ',').value();
    reader->KeepLabels();
    return reader;
  };
  auto reader = open("who,x,class,w,use\nann,1,A,0.5,test\nbob,2,B,2, \n\"c,d\",3,A,1,validate\n");
  EXPECT_THAT(reader->column_names(), ElementsAre("x"));
  ASSERT_EQ(reader->NextRows(2)->rows, 2);
  client::RowFacts facts = reader->TakeFacts();
  EXPECT_THAT(facts.weights, ElementsAre(0.5, 2));
  EXPECT_THAT(facts.groups, ElementsAre("ann", "bob"));
  EXPECT_THAT(facts.parts, ElementsAre("test", ""));
  ASSERT_EQ(reader->NextRows(2)->rows, 1);
  facts = reader->TakeFacts();
  EXPECT_THAT(facts.groups, ElementsAre("c,d"));
  EXPECT_THAT(facts.parts, ElementsAre("validate"));
  const auto error = [&](const std::string& row) {
    return std::string(open("who,x,class,w,use\n" + row)->NextRows(2).status().message());
  };
  EXPECT_THAT(error("ann,1,A,0,test\n"),
              HasSubstr("line 2: column 4 (w): expected a weight over 0"));
  EXPECT_THAT(error("ann,1,A,much,test\n"), HasSubstr("column 4 (w)"));
  EXPECT_THAT(error("ann,1,A,1,tset\n"), HasSubstr("column 5 (use): expected train, validate"));
}

TEST_F(CsvReaderTest, ErrorsNameThePlaceWhatWasExpectedAndWhatCame) {
  struct Case {
    std::string text;
    std::string message;
  };
  const std::string fill =
      "; if the value is missing, docs/coming_from_scikit_learn.md#missing-values-and-categories "
      "says how to fill it in";
  const Case cases[] = {
      {"", "line 1: expected a header with the names of the columns, got no text"},
      {"\na,b\n", "line 1: expected a header, got a blank line"},
      {"a,b,c, b\n1,2,3,4\n",
       "line 1: columns 2 and 4 are both named 'b'; give each column its own name"},
      {"a,b\n1,2\n3\n", "line 3: expected 2 cells as in the header, got 1"},
      {"a,b\n1,2\n3,4,5\n", "line 3: expected 2 cells as in the header, got 3"},
      {"a,b\n1,2\n\n3,4\n", "line 3: expected 2 cells as in the header, got a blank line"},
      {"a,b\n1,2\n3,four\n", "line 3: column 2 (b): expected a number, got 'four'"},
      {"a,b\n1,2\n,4\n", "line 3: column 1 (a): expected a number, got an empty cell" + fill},
      {"a,b\n1,2\n3,nan\n", "line 3: column 2 (b): expected a finite number, got 'nan'" + fill},
      {"a,b\n1,2\n-inf,3\n", "line 3: column 1 (a): expected a finite number, got '-inf'" + fill},
      {"a,b\n1,2\n3,1e999\n",
       "line 3: column 2 (b): expected a number in the range of float64, got '1e999'"},
      {"a,b\n1,2\n3,4x\n", "line 3: column 2 (b): expected a number, got '4x'"},
      {"a,b\n1,2\n3,0x10\n", "line 3: column 2 (b): expected a number, got '0x10'"},
      {"a,b\n1,cat\n",
       "line 2: column 2 (b): expected a number, got 'cat'; if the column is not an input, use "
       "--label=b or --exclude=b; if it has categories, "
       "docs/coming_from_scikit_learn.md#missing-values-and-categories says how to encode them"},
      {"a,b\n\"1\n\",2\n3,x\n", "line 4: column 2 (b): expected a number, got 'x'"},
      {"a,b\n1,\"2\n3,4\n", "line 2: a quoted cell is never closed"},
      {"a,b\n1,\"2\"3\n",
       "line 2: text after the closing quote of a cell; a quote inside a quoted cell is written "
       "twice"},
      {"a,b\n1,2\"\n", "line 2: a quote inside a cell that is not quoted"},
      {"a,b\n1\r,2\n", "line 2: a carriage return that does not end the line"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    EXPECT_THAT(ReadAll(c.text).status(), testing::IsError(StatusCode::kInvalidArgument, _, _,
                                                           EndsWith("rows.csv, " + c.message)));
  }
}

TEST_F(CsvReaderTest, HeaderOfNumbersIsRefusedAndSaysWhatToDo) {
  EXPECT_THAT(Open("1,2.5\n3,4\n").status().message(),
              HasSubstr("line 1: expected a header with the names of the columns, got only "
                        "numbers; if this is the first row, put a line of names"));
  EXPECT_TRUE(Open("x,2.5\n3,4\n").ok());
}

TEST_F(CsvReaderTest, UnknownLabelListsTheColumns) {
  EXPECT_THAT(Open("x,y,class\n", "klass").status().message(),
              HasSubstr(R"(has no column "klass"; its columns are "x", "y", "class")"));
  EXPECT_THAT(Open("x\n", "x").status().message(), HasSubstr("no input column is left"));
}

TEST_F(CsvReaderTest, QuoteThatIsNeverClosedDoesNotSwallowALargeFile) {
  std::string text = "a,b\n1,2\n3,\"";
  for (int i = 0; i < 5'000'000; ++i) text += "4,5\n";
  EXPECT_THAT(std::string(ReadAll(text).status().message()),
              EndsWith("line 3: a quoted cell is never closed"));
}

TEST_F(CsvReaderTest, RewindStartsAgainAtTheFirstRowEvenAfterAnInterrupt) {
  auto reader = Open("a\n1\n2\n").value();
  EXPECT_EQ(reader->NextRows(1)->At(0, 0), 1);
  ASSERT_TRUE(reader->CanRewind());
  reader->Interrupt();
  ASSERT_TRUE(reader->Rewind().ok());
  const auto block = reader->NextRows(9).value();
  EXPECT_EQ(block.rows, 2);
  EXPECT_EQ(block.At(0, 0), 1);
}

TEST_F(CsvReaderTest, InterruptEndsTheWaitForAPipe) {
  const std::string path = folder_.Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  // The pipe is opened for reading and writing. Therefore neither call of open() waits, and the
  // reader never sees the end of the file.
  const int writer = open(path.c_str(), O_RDWR);
  auto file = InputFile::Open(path).value();
  ASSERT_EQ(write(writer, "a\n1\n", 4), 4);
  auto reader = CsvReader::Open(std::move(file), "").value();
  EXPECT_FALSE(reader->CanRewind());
  auto next = std::async([&] { return reader->NextRows(2).status(); });
  reader->Interrupt();
  EXPECT_EQ(next.get().code(), StatusCode::kCancelled);
  close(writer);
}

TEST(InputFileTest, SaysWhyAFileCannotBeRead) {
  TempFolder folder;
  EXPECT_THAT(InputFile::Open(folder.Path("none")).status().message(),
              HasSubstr("No such file or directory"));
  EXPECT_THAT(InputFile::Open(folder.Path("")).status().message(), HasSubstr("it is a folder"));
}

}  // namespace
}  // namespace phimap::cli
