#include "server/evaluate/label_index.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace phimap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LabelIndexTest, AnyTextsAreClassesInTheOrderOfTheirBytes) {
  LabelIndex index;
  for (const char* label : {"b", "-", "10", "b", "ü", "B", "9", "-", "b"}) {
    ASSERT_TRUE(index.Add(label).ok());
  }
  EXPECT_EQ(index.rows(), 9);
  EXPECT_EQ(index.class_count(), 6);
  const LabelIndex::Classes classes = index.Take();
  EXPECT_THAT(classes.names, ElementsAre("-", "10", "9", "B", "b", "ü"));
  EXPECT_THAT(classes.numbers, ElementsAre(4, 0, 1, 4, 5, 3, 2, 0, 4));
  EXPECT_EQ(index.rows(), 0);
  EXPECT_EQ(index.class_count(), 0);
}

TEST(LabelIndexTest, TheOrderOfTheRowsDoesNotNameTheClasses) {
  LabelIndex forth;
  LabelIndex back;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(forth.Add(absl::StrCat("c", i % 7)).ok());
    ASSERT_TRUE(back.Add(absl::StrCat("c", (49 - i) % 7)).ok());
  }
  EXPECT_EQ(forth.Take().names, back.Take().names);
}

TEST(LabelIndexTest, MoreClassesThanTheLimitAreRefusedWithTheRow) {
  LabelIndex index;
  for (int i = 0; i < kMaxLabels; ++i) ASSERT_TRUE(index.Add(absl::StrCat(i)).ok());
  ASSERT_TRUE(index.Add("7").ok());  // already known
  const absl::Status status = index.Add("one more");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailOf(status)->reason, "CLASSES_TOO_MANY");
  EXPECT_EQ(DetailOf(status)->field, "labels");
  EXPECT_THAT(std::string(status.message()), HasSubstr("row 1001 of the stream"));
}

TEST(LabelIndexTest, AMissingLabelIsRefusedWithItsRow) {
  for (const char* missing : {"", " ", "\t", "nan", "NaN", "NAN", " nan "}) {
    LabelIndex index;
    ASSERT_TRUE(index.Add("a").ok());
    ASSERT_TRUE(index.Add("nanny").ok());
    const absl::Status status = index.Add(missing);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << missing;
    EXPECT_EQ(DetailOf(status)->reason, "LABEL_MISSING");
    EXPECT_EQ(DetailOf(status)->field, "labels");
    EXPECT_EQ(DetailOf(status)->metadata.at("stream_row"), "2");
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("row 2 of the stream (from 0) has no label"));
  }
}

// 150 numbers, `each` rows of each, and `more` rows of the first.
absl::Status CheckNumbers(int each, int more, const std::string& unit = "") {
  LabelIndex index;
  for (int i = 0; i < 150; ++i) {
    for (int j = 0; j < each; ++j) EXPECT_TRUE(index.Add(absl::StrCat(i * 0.5, unit)).ok());
  }
  for (int j = 0; j < more; ++j) EXPECT_TRUE(index.Add(absl::StrCat(0, unit)).ok());
  return index.CheckClasses();
}

TEST(LabelIndexTest, ATargetOfARegressionIsRefusedWithAHint) {
  for (const int each : {1, 5, 40}) {
    const absl::Status status = CheckNumbers(each, 0);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << each;
    EXPECT_EQ(DetailOf(status)->reason, "LABELS_NOT_CLASSES");
    EXPECT_THAT(std::string(status.message()), HasSubstr("150 different numbers"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("looks like the target of a regression"));
  }
  // One of them has 2 % of the rows and more, texts are classes, and so are 100 numbers.
  EXPECT_TRUE(CheckNumbers(10, 300).ok());
  EXPECT_TRUE(CheckNumbers(5, 0, " m").ok());
  LabelIndex few;
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(few.Add(absl::StrCat(i % 100)).ok());
  EXPECT_TRUE(few.CheckClasses().ok());
  EXPECT_TRUE(LabelIndex().CheckClasses().ok());
}

TEST(LabelIndexTest, WordsForMissingValuesAreNoLabels) {
  for (const char* word : {"NA", "n/a", "<NA>", "null", "None", " nan "}) {
    LabelIndex index;
    const absl::Status status = index.Add(word);
    ASSERT_FALSE(status.ok()) << word;
    EXPECT_EQ(DetailOf(status)->reason, "LABEL_MISSING") << word;
  }
  LabelIndex index;
  for (const char* word : {"Nadine", "nothing", "0", "-"})
    EXPECT_TRUE(index.Add(word).ok()) << word;
}

TEST(LabelIndexTest, ANumberWrittenInTwoWaysIsRefused) {
  LabelIndex index;
  for (const char* label : {"1", "2", "one", "1.0"}) ASSERT_TRUE(index.Add(label).ok());
  const absl::Status status = index.CheckClasses();
  EXPECT_EQ(DetailOf(status)->reason, "LABELS_EQUAL");
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"1\" and \"1.0\""));
}

TEST(LabelIndexTest, ALabelLongerThanTheLimitIsRefused) {
  LabelIndex index;
  ASSERT_TRUE(index.Add(std::string(kMaxLabelBytes, 'x')).ok());
  const absl::Status status = index.Add(std::string(kMaxLabelBytes + 1, 'x'));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailOf(status)->reason, "LABEL_TOO_LONG");
  EXPECT_THAT(std::string(status.message()), HasSubstr("257"));
}

}  // namespace
}  // namespace phimap
