// The main of the test programs. One program holds the tests of a folder, and --file=NAME.cc runs
// those of one file, so that each file is a test of its own to ctest, with its own process, time
// limit and labels. GoogleTest knows the file of each test, so that no list can be wrong: a test is
// in the file that it was compiled from.

#include <gmock/gmock.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace phimap::testing {
namespace {

constexpr std::string_view kFlag = "--file=";

// The filter that lets the tests of `file` run and no other; empty if there is none. Names of tests
// hold no character that a filter gives a meaning.
std::string FilterOf(std::string_view file) {
  std::string filter;
  const ::testing::UnitTest& program = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *program.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const ::testing::TestInfo& test = *suite.GetTestInfo(j);
      if (std::filesystem::path(test.file()).filename() != file) continue;
      filter.append(filter.empty() ? "" : ":").append(suite.name()).append(".").append(test.name());
    }
  }
  return filter;
}

// Why the flags that GoogleTest left cannot be obeyed, or nothing.
std::string Select(const std::vector<std::string_view>& flags) {
  if (flags.empty()) return "";
  if (flags.size() > 1 || !flags[0].starts_with(kFlag)) {
    return "takes --file=NAME.cc and the flags of GoogleTest (--help), and got " +
           std::string(flags[0]);
  }
  // The child of a death test: GoogleTest repeats all arguments and adds a filter of its own.
  if (!GTEST_FLAG_GET(internal_run_death_test).empty()) return "";
  if (GTEST_FLAG_GET(filter) != "*") return "takes --file or --gtest_filter, not both";
  const std::string filter = FilterOf(flags[0].substr(kFlag.size()));
  if (filter.empty())
    return "has no test of the file that --file names; CMakeLists.txt lists its files";
  GTEST_FLAG_SET(filter, filter);
  return "";
}

}  // namespace
}  // namespace phimap::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  const std::string refusal = phimap::testing::Select({argv + 1, argv + argc});
  if (!refusal.empty()) {
    std::cerr << argv[0] << ": " << refusal << "\n";
    return 2;
  }
  return RUN_ALL_TESTS();
}
