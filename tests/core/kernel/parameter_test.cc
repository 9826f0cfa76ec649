#include "core/kernel/parameter.h"

#include <cmath>
#include <string>

#include "core/status/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr absl::string_view kSources[] = {"scale", "median"};
constexpr absl::string_view kUnits[] = {"byte", "word"};
using Absent = Parameter::Absent;
constexpr Parameter kFound[] = {
    {.name = "share", .absent = Absent::kRequired, .least = 0, .above_least = true},
    {.name = "most", .type = ParameterType::kInteger, .default_text = "9", .least = 1},
};
constexpr ParameterCall kFind = {.name = "find", .parameters = kFound};
constexpr Parameter kParameters[] = {
    {.name = "n",
     .type = ParameterType::kInteger,
     .absent = Absent::kRequired,
     .least = 1,
     .largest = 64},
    {.name = "gamma",
     .type = ParameterType::kNumber,
     .default_text = "scale",
     .least = 0,
     .above_least = true,
     .words = kSources},
    {.name = "unit", .type = ParameterType::kWord, .default_text = "byte", .words = kUnits},
    {.name = "quick", .type = ParameterType::kBoolean, .default_text = "false"},
    {.name = "scales",
     .type = ParameterType::kNumbers,
     .absent = Absent::kNothing,
     .least = 0,
     .above_least = true},
    {.name = "matrix", .type = ParameterType::kMatrix, .absent = Absent::kNothing},
    {.name = "columns", .type = ParameterType::kColumns, .absent = Absent::kNothing},
    {.name = "rows", .type = ParameterType::kInteger, .absent = Absent::kFromData, .least = 1},
    {.name = "places",
     .type = ParameterType::kInteger,
     .absent = Absent::kNothing,
     .least = 1,
     .calls = absl::MakeConstSpan(&kFind, 1)},
};

absl::StatusOr<ParameterValues> Take(absl::string_view text) {
  ExpressionScanner scanner(text);
  const absl::StatusOr<ParsedCall> call = ParsedCall::Parse(scanner, "a call");
  if (!call.ok()) return call.status();
  return ParameterValues::Take(*call, kParameters);
}

TEST(ParameterTest, TextNamesEveryValueInTheOrderOfTheDescriptorsAndReadsBackEqual) {
  struct Case {
    const char* text;
    const char* canonical;
  };
  for (const Case& c :
       {Case{"f(n=3)", "n=3, gamma=scale, unit=byte, quick=false"},
        Case{"f(unit=word, gamma=.5, n=2e0)", "n=2, gamma=0.5, unit=word, quick=false"},
        Case{"f(n=1, scales=[1,2.5], quick=true)",
             "n=1, gamma=scale, unit=byte, quick=true, scales=[1, 2.5]"},
        Case{"f(n=1, matrix=[1,2;2,4])",
             "n=1, gamma=scale, unit=byte, quick=false, matrix=[1, 2; 2, 4]"},
        Case{"f(n=1, columns=0:8)", "n=1, gamma=scale, unit=byte, quick=false, columns=0:8"},
        Case{"f(n=1, columns=8)", "n=1, gamma=scale, unit=byte, quick=false, columns=8"},
        Case{"f(n=1, columns= 8 : 9, rows=4)",
             "n=1, gamma=scale, unit=byte, quick=false, columns=8, rows=4"}}) {
    const absl::StatusOr<ParameterValues> values = Take(c.text);
    ASSERT_TRUE(values.ok()) << c.text << ": " << values.status();
    EXPECT_EQ(values->ToText(), c.canonical);
    EXPECT_EQ(Take("f(" + values->ToText() + ")")->ToText(), c.canonical);
  }
}

TEST(ParameterTest, ValueMayBeACallWithParametersOfItsOwn) {
  const ParameterValues values = Take("f(n=1, places = find( share=.5 ), rows=2)").value();
  ASSERT_TRUE(values.IsCall("places"));
  EXPECT_FALSE(values.IsCall("n"));
  EXPECT_EQ(values.CallValues("places").Number("share"), 0.5);
  EXPECT_EQ(values.CallValues("places").Integer("most"), 9);
  EXPECT_EQ(values.ToText(),
            "n=1, gamma=scale, unit=byte, quick=false, rows=2, places=find(share=0.5, most=9)");
  EXPECT_EQ(Take("f(" + values.ToText() + ")")->ToText(), values.ToText());
  EXPECT_FALSE(Take("f(n=1, places=4)")->IsCall("places"));
  EXPECT_EQ(kParameters[8].Expected(), "an integer >= 1, or find(share=…)");
}

TEST(ParameterTest, MalformedCallAsAValueNamesItsColumn) {
  struct Case {
    const char* text;
    int column;
    const char* says;
  };
  for (const Case& c : {
           Case{"f(n=1, places=find())", 15, "find needs the parameter 'share', a number > 0"},
           Case{"f(n=1, places=find(share=0))", 26, "share of find is > 0, got 0"},
           Case{"f(n=1, places=find(share=1, least=2))", 29, "it has share, most"},
           Case{"f(n=1, places=find(share=1, share=2))", 29, "given twice"},
           Case{"f(n=1, places=find(share=1)", 28, "expected ',' or ')', got the end"},
           Case{"f(n=1, places=find(share=find(share=1)))", 30, "expected ',' or ')', got '('"},
           Case{"f(n=1, places=seek(share=1))", 15,
                "places is an integer >= 1, or find(share=…); got the call seek(…)"},
           Case{"f(n=find(share=1))", 5, "n is an integer from 1 to 64, got the call find(…)"},
           Case{"f(n=1, unit=byte(x=1))", 13, "got the call byte(…)"},
           Case{"f(n=1, quick=true())", 14, "got the call true(…)"},
           Case{"f(n=1, gamma=scale())", 14, "got the call scale(…)"},
       }) {
    const absl::Status status = Take(c.text).status();
    ASSERT_TRUE(DetailOf(status).has_value()) << c.text << status;
    EXPECT_EQ(DetailOf(status)->metadata.at("column"), absl::StrCat(c.column)) << status;
    EXPECT_NE(status.message().find(c.says), std::string::npos) << c.text << ": " << status;
  }
}

TEST(ParameterTest, ValuesAreReadByName) {
  const ParameterValues values = *Take("f(n=3, columns=2:8, scales=[1, 2], unit=word)");
  EXPECT_EQ(values.Integer("n"), 3);
  EXPECT_EQ(values.FirstColumn("columns"), 2);
  EXPECT_EQ(values.EndColumn("columns"), 8);
  EXPECT_EQ(Take("f(n=3, columns=5)")->EndColumn("columns"), 6);
  EXPECT_EQ(values.Numbers("scales"), (std::vector<double>{1, 2}));
  EXPECT_EQ(values.Word("unit"), "word");
  EXPECT_EQ(values.WordIndex("unit"), 1);
  EXPECT_FALSE(values.Boolean("quick"));
  EXPECT_FALSE(values.Has("matrix"));
  EXPECT_FALSE(values.Has("rows"));
  EXPECT_TRUE(values.Has("gamma"));
}

TEST(ParameterTest, WordsThatStandForNumbersAreResolved) {
  ParameterValues values = *Take("f(n=3)");
  EXPECT_TRUE(std::isnan(values.Number("gamma")));
  EXPECT_TRUE(values.AnyNumberIs("scale"));
  EXPECT_FALSE(values.AnyNumberIs("median"));
  values.Resolve("median", 5);
  EXPECT_TRUE(values.AnyNumberIs("scale"));
  values.Resolve("scale", 0.25);
  EXPECT_EQ(values.Number("gamma"), 0.25);
  EXPECT_EQ(values.ToText(), "n=3, gamma=0.25, unit=byte, quick=false");
}

TEST(ParameterTest, ErrorsNameTheColumnAndWhatWasExpected) {
  struct Case {
    const char* text;
    int column;  // in the text, from 1
    const char* says;
  };
  for (const Case& c :
       {Case{"f()", 1, "f needs the parameter 'n', an integer from 1 to 64"},
        Case{"f(m=1)", 3, "f has no parameter 'm'; it has n, gamma, unit, quick, scales, matrix"},
        Case{"f(n=65)", 5, "n is an integer from 1 to 64, got 65"},
        Case{"f(n=1.5)", 5, "n is an integer from 1 to 64, got 1.5"},
        Case{"f(n=1:2)", 5, "n is an integer from 1 to 64, got 1:2"},
        Case{"f(n=1, rows=0)", 13, "rows is an integer >= 1, got 0"},
        Case{"f(n=1, gamma=0)", 14, "gamma of f is > 0, got 0"},
        Case{"f(n=1, gamma=[1])", 14, "gamma is a number > 0, scale or median; got a list"},
        Case{"f(n=1, gamma=big)", 14, "gamma is a number > 0, scale or median; got 'big'"},
        Case{"f(n=1, unit=character)", 13, "unit is one of byte, word; got 'character'"},
        Case{"f(n=1, unit=2)", 13, "unit is one of byte, word; got 2"},
        Case{"f(n=1, quick=1)", 14, "quick is one of false, true; got 1"},
        Case{"f(n=1, scales=2)", 15, "scales of f is a list, [a, b], of numbers > 0, got 2"},
        Case{"f(n=1, scales=[1; 2])", 15, "got 2 rows of 1 number"},
        Case{"f(n=1, scales=[1, 0])", 15, "each number of scales is > 0, got 0 as number 2"},
        Case{"f(n=1, matrix=[1, 2])", 15,
             "matrix of f is a square list, [a, b; b, c], got 1 row of 2 numbers"},
        Case{"f(n=1, columns=3:3)", 16, "columns is a range of columns"},
        Case{"f(n=1, columns=-1:3)", 16, "got -1:3"},
        Case{"f(n=1, columns=0.5)", 16, "got 0.5"},
        Case{"f(n=1, columns=0:65537)", 16, "got 0:65537"},
        Case{"f(n=1, columns=all)", 16, "got 'all'"},
        Case{"f(n=1, columns=0:)", 18, "expected a number, got ')'"}}) {
    const absl::Status status = Take(c.text).status();
    EXPECT_EQ(ReasonOf(status), "EXPRESSION_INVALID");
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(c.says));
    EXPECT_EQ(DetailOf(status)->metadata["column"], std::to_string(c.column)) << c.text;
  }
}

TEST(ParameterTest, DescriptionsSayWhatIsTakenAndWhatCountsWithoutIt) {
  EXPECT_EQ(kParameters[0].Expected(), "an integer from 1 to 64");
  EXPECT_EQ(kParameters[0].DefaultText(), "required");
  EXPECT_EQ(kParameters[1].Expected(), "a number > 0, scale or median");
  EXPECT_EQ(kParameters[1].DefaultText(), "scale");
  EXPECT_EQ(kParameters[4].DefaultText(), "none");
  EXPECT_EQ(kParameters[7].DefaultText(), "from the data");
}

}  // namespace
}  // namespace phimap::testing
