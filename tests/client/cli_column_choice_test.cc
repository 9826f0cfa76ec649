#include <string>
#include <vector>

#include "client/files/column_choice.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::cli {
namespace {

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
                    HasSubstr("; got \"x\", \"y\", \"z\""), HasSubstr("--by-name")));
  EXPECT_THAT(ErrorOf({.of_version = {"x", "y", "w"}}),
              AllOf(HasSubstr("\"w\" is missing"), HasSubstr("got 5 columns"),
                    HasSubstr("\"id\", \"z\", \"label\" are not among the version's"),
                    Not(HasSubstr("; got \""))));
  EXPECT_THAT(ErrorOf({.exclude = {"x"}, .of_version = {"x", "y", "z"}}),
              HasSubstr("\"x\" is missing"));
}

TEST(ColumnChoiceTest, ByNameTakesTheVersionsOrder) {
  const auto chosen = ChooseColumns(
      kHeader, {.passthrough = {"id"}, .by_name = true, .of_version = {"z", "x"}}, "rows.csv");
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_THAT(chosen->inputs, ElementsAre(3, 1));
  EXPECT_THAT(chosen->left_out, ElementsAre(2, 4));
  EXPECT_THAT(ErrorOf({.by_name = true, .of_version = {"z", "w"}}), HasSubstr("\"w\" is missing"));
  EXPECT_THAT(ErrorOf({.by_name = true, .reference = "v"}), HasSubstr("v have no names"));
}

TEST(ColumnChoiceTest, WhatIsCarriedAlongMayBeAnInputOrTheLabelToo) {
  const auto chosen = ChooseColumns(
      kHeader, {.label = "label", .passthrough = {"label", "x"}, .of_version = {"x", "y", "z"}},
      "rows.csv");
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_THAT(chosen->inputs, ElementsAre(1, 2, 3));
  EXPECT_EQ(chosen->label, 4);
  EXPECT_THAT(chosen->passthrough, ElementsAre(4, 1));
  EXPECT_THAT(chosen->left_out, ElementsAre(0));
  EXPECT_THAT(ChooseColumns(kHeader, {.passthrough = {"x"}}, "rows.csv")->inputs,
              ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(
      std::string(
          ChooseColumns({"f0", "a"}, {.passthrough = {"f0"}}, "rows.csv").status().message()),
      HasSubstr("the name of a feature"));
}

TEST(ColumnChoiceTest, AColumnIsThereAndHasOneMeaning) {
  EXPECT_THAT(ErrorOf({.exclude = {"w"}}),
              AllOf(HasSubstr("--exclude: rows.csv has no column \"w\""), HasSubstr("\"id\"")));
  EXPECT_THAT(ErrorOf({.columns = {"x", "x"}}), HasSubstr("already used by --columns"));
  EXPECT_THAT(ErrorOf({.exclude = {"x"}, .passthrough = {"x"}}),
              HasSubstr("--passthrough: column \"x\" is already used by --exclude"));
}

}  // namespace
}  // namespace phimap::cli
