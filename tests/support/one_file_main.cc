// The main function of the test programs. A program contains all tests of a folder, and
// --file=NAME.cc runs the tests of one file. So each file is a ctest test of its own, with its own
// process, time limit and labels. GoogleTest knows from which file each test was compiled, so no
// list of tests has to be maintained.

#include <gmock/gmock.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace phimap::testing {
namespace {

constexpr std::string_view kFlag = "--file=";

// Returns the GoogleTest filter that selects exactly the tests of `file`; empty if the file has no
// tests. Names of tests contain no character that has a meaning in filters.
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

// Selects tests by `flags`, the arguments that are not GoogleTest's own. Returns an error message
// if `flags` are invalid, and an empty text otherwise.
std::string Select(const std::vector<std::string_view>& flags) {
  if (flags.empty()) return "";
  if (flags.size() > 1 || !flags[0].starts_with(kFlag)) {
    return "takes --file=NAME.cc and the flags of GoogleTest (--help), and got " +
           std::string(flags[0]);
  }
  // This is the child process of a death test. GoogleTest repeats all arguments there and adds its
  // own filter.
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
