#include "core/status/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace phimap {
namespace {

using ::testing::StartsWith;

TEST(CommandLineTest, AnUnknownFlagIsNamedWithTheOneThatWasMeant) {
  const std::vector<std::string> known = {
      "--input",       "--format",        "--label", "--spec", "--kernel", "--seed",
      "--standardize", "--output-format", "--json",  "-o",     "--server"};
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

TEST(CommandLineTest, AnUnknownCommandIsNamedWithTheOneThatWasMeant) {
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

// Returns what is said of the words, which a program with a command and flags of each kind reads;
// "" if it accepts them.
std::string SaidOf(std::vector<std::string> words) {
  int count = 1;
  double share = 0.5;
  int64_t free = 0;
  std::string format;
  std::string token;
  std::string name;
  CLI::App program("", "program");
  program.require_subcommand(1);
  program.fallthrough();
  program.add_option("--count", count)->check(IntegerFrom(1, 64));
  program.add_option("--share", share)->check(NumberFrom(0.01, 3600.5));
  program.add_option("--format", format)->check(OneOf({"csv", "npy", "text"}));
  CLI::Option* const file = program.add_option("--token_file", token);
  program.add_option("--token", token)->excludes(file);
  program.add_option("--free", free);
  program.add_subcommand("list")->add_option("NAME", name);
  program.add_subcommand("show")->add_option("NAME", name)->required();
  std::reverse(words.begin(), words.end());
  try {
    program.parse(words);
  } catch (const CLI::ParseError& error) {
    return UsageText(program, error);
  }
  return "";
}

TEST(CommandLineTest, AnErrorNamesTheFlagAndWhatWasExpectedAndWhatCame) {
  const struct {
    std::vector<std::string> words;
    const char* text;
  } cases[] = {
      {{"list", "--count=0"}, "--count: expected an integer from 1 to 64, got '0'"},
      {{"list", "--count=65"}, "--count: expected an integer from 1 to 64, got '65'"},
      {{"list", "--count=1.5"}, "--count: expected an integer from 1 to 64, got '1.5'"},
      {{"list", "--count=many"}, "--count: expected an integer from 1 to 64, got 'many'"},
      {{"list", "--share=0.009"}, "--share: expected a number from 0.01 to 3600.5, got '0.009'"},
      {{"list", "--share=3601"}, "--share: expected a number from 0.01 to 3600.5, got '3601'"},
      {{"list", "--share=nan"}, "--share: expected a number from 0.01 to 3600.5, got 'nan'"},
      {{"list", "--format=xml"}, "--format: expected csv, npy or text, got 'xml'"},
      {{"list", "--free=x"}, "--free: expected a number, got 'x'"},
      {{"list", "--free=1", "--free=2"}, "--free is given more than once; expected one value"},
      {{"list", "--token=a", "--token_file=b"},
       "--token_file excludes --token; expected one of them, got both"},
      {{"list", "a", "b", "c"}, "expected no further word, got 'b'"},
      {{"show"}, "NAME is required"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(SaidOf(c.words), std::string(c.text) + "\n  program " + c.words[0] + " --help");
  }
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"list", "--count=1"},
                                             {"list", "--count=64"},
                                             {"show", "a", "--share=3600.5"},
                                             {"list", "--share=0.01", "--format=text"}}) {
    EXPECT_EQ(SaidOf(words), "");
  }
}

TEST(CommandLineTest, AnUnknownWordIsReportedBeforeWhatItMakesLookWrong) {
  EXPECT_EQ(SaidOf({"show", "--coutn=1"}),
            "unknown flag --coutn; did you mean --count?\n  the flags are listed by 'program show "
            "--help'");
  EXPECT_EQ(SaidOf({"lsit", "--coutn=1"}),
            "program has no command 'lsit'; did you mean list? the commands are list, show");
  EXPECT_THAT(SaidOf({"--coutn=1"}), StartsWith("unknown flag --coutn; did you mean --count?"));
  EXPECT_EQ(SaidOf({}), "a command of program is missing; the commands are list, show");
}

}  // namespace
}  // namespace phimap
