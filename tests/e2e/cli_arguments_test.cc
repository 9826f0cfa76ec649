// What `phimap` makes of the words it is given, before any work is done.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/e2e/cli_fixture.h"

namespace phimap::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class CliArgumentsTest : public CliFixture {
 protected:
  void BuildSmall() {
    input_ = File("a,b\n1,2\n3,4\n5,6\n", "small.csv");
    const ProcessResult built = Phimap(
        {"build", "small", "--input=" + input_, "--mapping=f1(landmarks=2)", "--kernel=linear()"});
    ASSERT_EQ(built.exit_code, 0) << built.err;
  }
  // Through a shell, as process substitution and redirections need.
  ProcessResult InShell(const std::string& words) {
    return RunProcess({"/bin/bash", "-c",
                       absl::StrCat("set -o pipefail; ", PHIMAP_BINARY,
                                    " --server=", server_.address(), " ", words)});
  }

  std::string input_;
};

// Every command of the list that an unknown one is answered with.
TEST_F(CliArgumentsTest, AWrongFlagIsNamedFirstByEveryCommandWithWhatWasMeant) {
  const struct {
    std::vector<std::string> words;
    const char* error;
  } cases[] = {
      {{"build", "x", "--lable=a"}, "--lable; did you mean --label?"},
      {{"build", "--lable", "a", "x"}, "--lable; did you mean --label?"},
      {{"build", "x", "--rows=many", "--lable=a"}, "--lable; did you mean --label?"},
      {{"transform", "--outptu=o.csv"}, "--outptu; did you mean --output?"},
      {{"transform", "x", "--output_format=csv"}, "--output_format; did you mean --output-format?"},
      {{"list", "--jsno"}, "--jsno; did you mean --json?"},
      {{"show", "--jsn"}, "--jsn; did you mean --json?"},
      {{"verify", "--sever=h:1"}, "--sever; did you mean --server?"},
      {{"advise", "--eror=0.1"}, "--eror; did you mean --error?"},
      {{"evaluate", "x", "--held_out=.3"}, "--held_out; did you mean --held-out?"},
      {{"alias", "set", "--etga=1"}, "--etga; did you mean --etag?"},
      {{"alias", "list", "--jsn"}, "--jsn; did you mean --json?"},
      {{"delete", "--all-version"}, "--all-version; did you mean --all-versions?"},
      {{"keep", "x", "--tlt=7d"}, "--tlt; did you mean --ttl?"},
      {{"prune", "x", "--unalised"}, "--unalised; did you mean --unaliased?"},
      {{"export", "x", "--outpt=f"}, "--outpt; did you mean --output?"},
      {{"import", "--nmae=x"}, "--nmae; did you mean --name?"},
      {{"inspect", "--jsno"}, "--jsno; did you mean --json?"},
      {{"health", "--timeotu=1"}, "--timeotu; did you mean --timeout?"},
      {{"admin", "check", "--quarantin"}, "--quarantin; did you mean --quarantine?"},
      {{"bench", "--caller=3"}, "--caller; did you mean --callers?"},
      {{"list", "--landmarks=500"}, "--landmarks\n"},
      {{"--sevrer=h:1", "list"}, "--sevrer; did you mean --server?"},
      {{"--sevrer=h:1"}, "--sevrer; did you mean --server?"},
  };
  const std::string commands = Phimap({"frob"}).err;
  for (const auto& c : cases) {
    SCOPED_TRACE(::testing::PrintToString(c.words));
    const ProcessResult refused = Phimap(c.words);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, StartsWith(absl::StrCat("phimap: unknown flag ", c.error)));
  }
  // None is left out.
  std::string names = commands.substr(commands.rfind(" are ") + 5);
  names.pop_back();
  for (size_t at = 0; at < names.size(); at = names.find(", ", at) + 2) {
    const std::string name = names.substr(at, names.find(", ", at) - at);
    EXPECT_TRUE(std::any_of(std::begin(cases), std::end(cases), [&](const auto& c) {
      return c.words[0] == name;
    })) << name;
    if (names.find(", ", at) == std::string::npos) break;
  }
}

TEST_F(CliArgumentsTest, TheVersionIsPrinted) {
  const ProcessResult phimap = RunProcess({PHIMAP_BINARY, "--version"});
  EXPECT_EQ(phimap.exit_code, 0);
  EXPECT_THAT(phimap.out, ::testing::MatchesRegex("phimap [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  const ProcessResult phimapd = RunProcess({PHIMAPD_BINARY, "--version"});
  EXPECT_EQ(phimapd.exit_code, 0);
  EXPECT_EQ("phimap " + phimapd.out, phimap.out);
}

TEST_F(CliArgumentsTest, AnOutputOfAnUnknownExtensionIsRefusedBeforeAnyWork) {
  for (const char* name : {"o.parquet", "o.npy.gz", "o.csv.zst", "o.npz", "o.svmlight", "o.txt",
                           "o.tsv", "o.CSVX", ".hidden.arrow", "o.v2"}) {
    SCOPED_TRACE(name);
    const std::string output = folder_.path() + "/" + name;
    // A mapping that is not there and an input that is not there: neither was looked at.
    const ProcessResult refused = Phimap(
        {"transform", "nothing", "--input=" + folder_.path() + "/no.csv", "--output=" + output});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, StartsWith("phimap: --output=" + output + ": "));
    EXPECT_THAT(refused.err, HasSubstr(".csv or .npy"));
    EXPECT_THAT(refused.err, HasSubstr("--output-format=csv"));
    EXPECT_FALSE(std::filesystem::exists(output));
  }
}

TEST_F(CliArgumentsTest, AnExtensionOrAnOptionNamesTheFormatOfTheOutput) {
  BuildSmall();
  const struct {
    const char* name;
    std::vector<std::string> more;
    bool npy;
  } cases[] = {
      {"o.csv", {}, false},
      {"o.npy", {}, true},
      {"o.NPY", {}, true},
      {"folder.d/o.csv", {}, false},
      // No extension: as the input is.
      {"features", {}, false},
      {".features", {}, false},
      {"features.", {}, false},
      {"folder.d/features", {}, false},
      // What is said wins.
      {"o.parquet", {"--output-format=npy"}, true},
      {"o.parquet", {"--output-format=csv"}, false},
      {"o.csv", {"--output-format=npy"}, true},
      {"features", {"--output-format=npy"}, true},
  };
  std::filesystem::create_directory(folder_.path() + "/folder.d");
  for (const auto& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.name, " ", c.more.size()));
    const std::string output = folder_.path() + "/" + c.name;
    std::vector<std::string> words = {"transform", "small", "--input=" + input_,
                                      "--output=" + output};
    words.insert(words.end(), c.more.begin(), c.more.end());
    const ProcessResult done = Phimap(words);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(Read(output), StartsWith(c.npy ? "\x93NUMPY" : "f0,f1\n"));
  }
}

TEST_F(CliArgumentsTest, PipesAndDevicesGetTheFormatOfTheInput) {
  BuildSmall();
  const std::string csv = Phimap({"transform", "small", "--input=" + input_, "--output=-"}).out;
  EXPECT_THAT(csv, StartsWith("f0,f1\n"));
  const std::string words = "transform small --input=" + input_ + " --output=";
  const std::string kept = folder_.path() + "/kept";
  for (const std::string& how :
       std::vector<std::string>{words + "/dev/stdout", words + "/dev/fd/1",
                                words + "/dev/stdout | cat", words + ">(cat) | cat"}) {
    SCOPED_TRACE(how);
    const ProcessResult done = InShell(how);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(done.out, csv);
  }
  EXPECT_EQ(InShell(words + "/dev/null").exit_code, 0);
  const std::string file = folder_.path() + "/redirected";
  EXPECT_EQ(InShell(words + "/dev/stdout > " + file).exit_code, 0);
  EXPECT_EQ(Read(file), csv);
}

}  // namespace
}  // namespace phimap::e2e
