// Tests that no file and no function is too long to be read in one go.
#include "tests/core/structure/size_rules.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/source_dir.h"

namespace phimap {
namespace {

using phimap::testing::FunctionSize;
using phimap::testing::FunctionsOf;
using phimap::testing::SizeViolations;

// The files and functions that may be longer than the limits. `begins` is the beginning of their
// violation, `why` the reason.
struct Defended {
  const char* begins;
  const char* why;
};
constexpr Defended kDefended[] = {
    {"core/mapping/spec/mapping_parameters.cc:", "a list: one parameter after the other"},
};

TEST(SizeRulesTest, NoFileAndNoFunctionIsTooLong) {
  for (const std::string& violation : SizeViolations(phimap::testing::SourcePath())) {
    bool defended = false;
    for (const Defended& entry : kDefended) {
      defended = defended || absl::StartsWith(violation, entry.begins);
    }
    EXPECT_TRUE(defended) << violation;
  }
}

TEST(SizeRulesTest, EveryFormOfAFunctionIsMeasured) {
  const std::vector<FunctionSize> functions = FunctionsOf(
      "namespace a {\n"
      "class B : public C {\n public:\n"
      "  explicit B(int x)\n      : x_(x) {\n"
      "    if (x) {\n      return;\n"
      "    }\n  }\n  int x() const { return x_; }\n"
      "};\nconstexpr int kTable[] = {\n"
      "    F(1),\n};\ntemplate <typename T>\n"
      "void Long(int a,\n          int b) {\n"
      "  const auto step = [&](int64_t i) {\n"
      "    return i;\n  };\n}\n}  // namespace a\n");
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[0].line, 4);
  EXPECT_EQ(functions[0].lines, 5);
  EXPECT_EQ(functions[1].line, 15);
  EXPECT_EQ(functions[1].lines, 5);
  EXPECT_EQ(functions[1].head, "template <typename T> void Long(int a, int b) {");
}

TEST(SizeRulesTest, ALongFunctionIsFound) {
  std::string body;
  for (int i = 0; i < 39; ++i) absl::StrAppend(&body, "  f();\n");
  ASSERT_EQ(FunctionsOf(absl::StrCat("void G() {\n", body, "}\n")).at(0).lines, 41);
}

}  // namespace
}  // namespace phimap
