#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "lab/results.h"

namespace phimap::lab {
namespace {

std::string TextOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(LabResultsTest, TablesAreCsvWithQuotesWhereTheyAreNeeded) {
  Table table("t", {"a", "b, c"}, "");
  table.Add({1, 0.1});
  table.Add({"x \"y\"", -2.5e-7});
  EXPECT_EQ(table.ToCsv(), "a,\"b, c\"\n1,0.1\n\"x \"\"y\"\"\",-2.5e-07\n");
}

// A verdict that disagrees needs a reason, and one that agrees must not have any.
TEST(LabResultsTest, AVerdictIsExpectedWhereItAgreesOrSaysWhyNot) {
  EXPECT_TRUE((Verdict{.agrees = true}).is_expected());
  EXPECT_FALSE((Verdict{.agrees = false}).is_expected());
  EXPECT_TRUE((Verdict{.agrees = false, .why_not = "a slip of the paper"}).is_expected());
  EXPECT_FALSE((Verdict{.agrees = true, .why_not = "a slip of the paper"}).is_expected());
}

TEST(LabResultsTest, AFolderHoldsTheTablesTheirCaptionsAndTheVerdicts) {
  std::string name = ::testing::TempDir() + "phimap-lab-XXXXXX";
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  Results results;
  results.AddTable("runs", {"run", "error"}).Add({1, 0.25});
  results.AddTable("summary", {"mean"}, "The mean.").Add({0.25});
  results.Judge({.claim = "half",
                 .printed = "0.5",
                 .measured = "0.25",
                 .rule = "equal",
                 .agrees = false,
                 .why_not = "it is not"});
  ASSERT_TRUE(results.Write(name).ok());
  EXPECT_EQ(TextOf(name + "/runs.csv"), "run,error\n1,0.25\n");
  EXPECT_EQ(TextOf(name + "/tables.csv"), "name,caption\nruns,\nsummary,The mean.\n");
  EXPECT_EQ(TextOf(name + "/verdicts.csv"),
            "claim,printed,measured,rule,agrees,why_not\nhalf,0.5,0.25,equal,no,it is not\n");
  std::filesystem::remove_all(name);
  EXPECT_FALSE(results.Write(name).ok());
}

}  // namespace
}  // namespace phimap::lab
