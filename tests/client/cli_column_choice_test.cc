#include <string>
#include <vector>

#include "client/cli/column_choice.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace phimap::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string> kHeader = {"id", "x", "y", "z", "label"};

std::string ErrorOf(const ColumnChoice& choice) {
  return std::string(ChooseColumns(kHeader, choice, "rows.csv").status().message());
}

TEST(ColumnChoiceTest, AllThatNobodyNamesOtherwiseAreInputsAsTheyStand) {
  const auto chosen = ChooseColumns(
      kHeader, {.exclude = {"y"}, .label = "label", .passthrough = {"id"}}, "rows.csv");
  ASSERT_TRUE(chosen.ok());
  EXPECT_THAT(chosen->inputs, ElementsAre(1, 3));
  EXPECT_EQ(chosen->label, 4);
  EXPECT_THAT(chosen->passthrough, ElementsAre(0));
  EXPECT_THAT(chosen->left_out, IsEmpty());
}

TEST(ColumnChoiceTest, NamedInputsComeInTheirOrder) {
  const auto chosen = ChooseColumns(kHeader, {.columns = {"z", "x"}}, "rows.csv");
  ASSERT_TRUE(chosen.ok());
  EXPECT_THAT(chosen->inputs, ElementsAre(3, 1));
}

TEST(ColumnChoiceTest, WhatTheVersionDoesNotHaveIsLeftOut) {
  const auto chosen =
      ChooseColumns(kHeader, {.of_version = {"x", "y", "z"}, .reference = "v"}, "rows.csv");
  ASSERT_TRUE(chosen.ok());
  EXPECT_THAT(chosen->inputs, ElementsAre(1, 2, 3));
  EXPECT_THAT(chosen->left_out, ElementsAre(0, 4));
}

TEST(ColumnChoiceTest, OtherNamesThanTheVersionsAreAnErrorWithBothLists) {
  EXPECT_THAT(ErrorOf({.of_version = {"y", "x", "z"}, .reference = "letters@prod"}),
              AllOf(HasSubstr("another order"), HasSubstr("letters@prod: \"y\", \"x\", \"z\""),
                    HasSubstr("got 3: \"x\", \"y\", \"z\""), HasSubstr("--columns=y,x,z")));
  EXPECT_THAT(ErrorOf({.of_version = {"x", "y", "w"}}),
              AllOf(HasSubstr("\"w\" is missing"), HasSubstr("5 columns came"),
                    HasSubstr("\"id\", \"z\", \"label\" are not among the version's")));
  EXPECT_THAT(ErrorOf({.exclude = {"x"}, .of_version = {"x", "y", "z"}}),
              HasSubstr("\"x\" is missing"));
}

TEST(ColumnChoiceTest, AColumnIsThereAndHasOneMeaning) {
  EXPECT_THAT(ErrorOf({.exclude = {"w"}}),
              AllOf(HasSubstr("--exclude: rows.csv has no column \"w\""), HasSubstr("\"id\"")));
  EXPECT_THAT(ErrorOf({.columns = {"x", "x"}}), HasSubstr("--columns already"));
  EXPECT_THAT(ErrorOf({.label = "x", .passthrough = {"x"}}),
              HasSubstr("--label: column \"x\" is named by --passthrough already"));
}

}  // namespace
}  // namespace phimap::cli
