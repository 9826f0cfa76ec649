#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/cli/usage.h"

namespace phimap::cli {
namespace {

TEST(CliUsageTest, AnUnknownFlagIsNamedWithTheOneThatWasMeant) {
  const std::vector<std::string> known = {
      "--input",       "--format",        "--label", "--mapping", "--kernel", "--seed",
      "--standardize", "--output-format", "--json",  "-o",        "--server"};
  const struct {
    const char* word;
    const char* text;
  } cases[] = {
      {"--lable", "unknown flag --lable; did you mean --label?"},
      {"--lable=a", "unknown flag --lable; did you mean --label?"},
      {"--lable==", "unknown flag --lable; did you mean --label?"},
      {"--labl=a", "unknown flag --labl; did you mean --label?"},
      {"--labels", "unknown flag --labels; did you mean --label?"},
      {"--output_format=csv", "unknown flag --output_format; did you mean --output-format?"},
      {"--standardise", "unknown flag --standardise; did you mean --standardize?"},
      {"--standartise", "unknown flag --standartise; did you mean --standardize?"},
      {"-input=x", "unknown flag -input; did you mean --input?"},
      {"--Json", "unknown flag --Json; did you mean --json?"},
      // No known flag is similar enough. For a flag of four letters, at most one letter may differ.
      {"--bean", "unknown flag --bean"},
      {"--landmarks=500", "unknown flag --landmarks"},
      {"--s", "unknown flag --s"},
      {"-x", "unknown flag -x"},
      {"--", "unknown flag --"},
      {"-", "unknown flag -"},
      {"", "unknown flag "},
  };
  for (const auto& c : cases) EXPECT_EQ(UnknownFlagText(c.word, known), c.text);
  EXPECT_EQ(UnknownFlagText("--lable", {}), "unknown flag --lable");
}

TEST(CliUsageTest, AnUnknownCommandIsNamedWithTheOneThatWasMeant) {
  const std::vector<std::string> known = {"build", "transform", "list"};
  EXPECT_EQ(UnknownCommandText("phimap", "bulid", known),
            "phimap has no command 'bulid'; did you mean build? the commands are build, transform, "
            "list");
  EXPECT_EQ(UnknownCommandText("phimap alias", "lst", {"set", "list"}),
            "phimap alias has no command 'lst'; did you mean list? the commands are set, list");
  EXPECT_EQ(UnknownCommandText("phimap", "frob", known),
            "phimap has no command 'frob'; the commands are build, transform, list");
  EXPECT_EQ(UnknownCommandText("phimap", "", known),
            "phimap has no command ''; the commands are build, transform, list");
  EXPECT_EQ(MissingCommandText("phimap", known),
            "a command of phimap is missing; the commands are build, transform, list");
}

}  // namespace
}  // namespace phimap::cli
