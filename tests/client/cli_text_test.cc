// Tests reading texts from lines and from CSV columns, and the errors for files without texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/files/input_file.h"
#include "client/files/text_reader.h"
#include "tests/client/temp_file.h"
#include "tests/support/matchers.h"

namespace phimap::cli {
namespace {

using Texts = std::vector<std::string>;

absl::StatusOr<Texts> ReadAll(client::RowSource& reader, const client::BlockLimits& limits = {}) {
  Texts texts;
  while (true) {
    auto block = reader.Next(limits);
    if (!block.ok()) return block.status();
    if (block->empty()) return texts;
    EXPECT_NE(block->strings(), nullptr);
    EXPECT_LE(block->rows(), limits.rows);
    for (const std::string& text : block->strings()->values) texts.push_back(text);
  }
}

class TextReaderTest : public ::testing::Test {
 protected:
  std::unique_ptr<TextLinesReader> Lines(const std::string& text) {
    auto file = InputFile::Open(folder_.Write("texts.txt", text)).value();
    return std::make_unique<TextLinesReader>(std::move(file));
  }
  absl::StatusOr<std::unique_ptr<TextColumnReader>> Column(const std::string& text,
                                                           const std::string& column,
                                                           const std::string& label = "") {
    auto file = InputFile::Open(folder_.Write("texts.csv", text)).value();
    return TextColumnReader::Open(std::move(file), column, label);
  }

  TempFolder folder_;
};

TEST_F(TextReaderTest, EveryLineIsATextAnEmptyOneToo) {
  const auto reader = Lines("one\n\ntwo words\r\n ünlü ");
  EXPECT_EQ(reader->columns(), 0);
  EXPECT_THAT(*ReadAll(*reader), ElementsAre("one", "", "two words", " ünlü "));
  EXPECT_THAT(*ReadAll(*reader), IsEmpty());
  ASSERT_TRUE(reader->Rewind().ok());
  EXPECT_THAT(*ReadAll(*reader, {.rows = 3, .bytes = 4}),
              ElementsAre("one", "", "two words", " ünlü "));
  EXPECT_THAT(*ReadAll(*Lines("")), IsEmpty());
}

TEST_F(TextReaderTest, ALineThatIsNoTextIsNamed) {
  const auto reader = Lines("one\ntw\xff\n");
  EXPECT_THAT(ReadAll(*reader).status(),
              testing::IsError(StatusCode::kInvalidArgument, _, _,
                               HasSubstr("line 2: expected text in UTF-8")));
}

TEST_F(TextReaderTest, AColumnOfACsvFileIsReadWithItsLabels) {
  const std::string csv =
      "id,text,kind\n1,\"well, \"\"yes\"\"\",good\n2,\"over\nlines\",bad\n\n3,,good\n";
  auto reader = Column(csv, "text", "kind").value();
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(*ReadAll(*reader, {.rows = 2}), ElementsAre("well, \"yes\"", "over\nlines", ""));
    EXPECT_THAT(reader->TakeLabels(), ElementsAre("good", "bad", "good"));
    EXPECT_THAT(reader->TakeLabels(), IsEmpty());
    ASSERT_TRUE(reader->Rewind().ok());
  }
}

TEST_F(TextReaderTest, FaultsOfACsvFileAreNamed) {
  const struct {
    const char* text;
    const char* column;
    const char* label;
    const char* message;
  } cases[] = {
      {"", "a", "", "line 1: expected a header"},
      {"a,b\n", "c", "", "--text: "},
      {"a,b\n", "c", "", "has no column 'c'; its columns are a, b"},
      {"a,b\n", "a", "c", "--label: "},
      {"a,a\n", "a", "", "has more than one column 'a'"},
      {"a,b\n", "a", "a", "--label and --text name the same column"},
      {"a,b\n1,2\nno, commas, here\n", "a", "", "line 3: expected 2 cells as in the header, got 3"},
      {"a,b\n1,2\n1,\xff\n", "b", "", "line 3: column 2 (b): expected text in UTF-8"},
  };
  for (const auto& c : cases) {
    auto reader = Column(c.text, c.column, c.label);
    EXPECT_THAT(reader.ok() ? ReadAll(**reader).status() : reader.status(),
                testing::IsError(StatusCode::kInvalidArgument, _, _, HasSubstr(c.message)))
        << c.message;
  }
}

}  // namespace
}  // namespace phimap::cli
