#include "core/learn/label_index.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

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
  EXPECT_THAT(index.Add("one more"), IsError(StatusCode::kInvalidArgument, "CLASSES_TOO_MANY",
                                             "labels", HasSubstr("row 1001 of the stream")));
}

TEST(LabelIndexTest, AMissingLabelIsRefusedWithItsRow) {
  for (const char* missing : {"", " ", "\t", "nan", "NaN", "NAN", " nan "}) {
    LabelIndex index;
    ASSERT_TRUE(index.Add("a").ok());
    ASSERT_TRUE(index.Add("nanny").ok());
    const absl::Status status = index.Add(missing);
    EXPECT_THAT(status, IsError(StatusCode::kInvalidArgument, "LABEL_MISSING", "labels"))
        << missing;
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
    EXPECT_THAT(CheckNumbers(each, 0),
                IsError(StatusCode::kInvalidArgument, "LABELS_NOT_CLASSES", _,
                        AllOf(HasSubstr("150 different numbers"),
                              HasSubstr("looks like the target of a regression"))))
        << each;
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
    EXPECT_EQ(ReasonOf(status), "LABEL_MISSING") << word;
  }
  LabelIndex index;
  for (const char* word : {"Nadine", "nothing", "0", "-"})
    EXPECT_TRUE(index.Add(word).ok()) << word;
}

TEST(LabelIndexTest, ANumberWrittenInTwoWaysIsRefused) {
  LabelIndex index;
  for (const char* label : {"1", "2", "one", "1.0"}) ASSERT_TRUE(index.Add(label).ok());
  const absl::Status status = index.CheckClasses();
  EXPECT_EQ(ReasonOf(status), "LABELS_EQUAL");
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"1\" and \"1.0\""));
}

TEST(LabelIndexTest, ALabelLongerThanTheLimitIsRefused) {
  LabelIndex index;
  ASSERT_TRUE(index.Add(std::string(kMaxLabelBytes, 'x')).ok());
  EXPECT_THAT(index.Add(std::string(kMaxLabelBytes + 1, 'x')),
              IsError(StatusCode::kInvalidArgument, "LABEL_TOO_LONG", _, HasSubstr("257")));
}

}  // namespace
}  // namespace phimap::testing
