// Tests how `phimap` reads its arguments, before it does any work.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/e2e/cli_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

class CliArgumentsTest : public CliFixture {
 protected:
  void BuildSmall() {
    input_ = File("a,b\n1,2\n3,4\n5,6\n", "small.csv");
    const ProcessResult built = Phimap(
        {"build", "small", "--input=" + input_, "--spec=f1(landmarks=2)", "--kernel=linear()"});
    ASSERT_EQ(built.exit_code, 0) << built.err;
  }
  // Runs phimap through a shell, so that tests can use process substitution and redirections.
  ProcessResult InShell(const std::string& words) {
    return RunProcess({"/bin/bash", "-c",
                       absl::StrCat("set -o pipefail; ", PHIMAP_BINARY,
                                    " --server=", server_.address(), " ", words)});
  }

  std::string input_;
};

// Covers every command. The error for an unknown command lists all commands, and the test compares
// its table with that list.
TEST_F(CliArgumentsTest, AWrongFlagIsNamedFirstByEveryCommandWithWhatWasMeant) {
  const struct {
    std::vector<std::string> words;
    const char* error;
  } cases[] = {
      {{"build", "x", "--lable=a"}, "--lable; did you mean --label?"},
      {{"build", "--lable", "a", "x"}, "--lable; did you mean --label?"},
      {{"build", "x", "--rows=many", "--lable=a"}, "--lable; did you mean --label?"},
      {{"transform", "--outptu=o.csv"}, "--outptu; did you mean --output?"},
      {{"transform", "x", "--output_fromat=csv"}, "--output_fromat; did you mean --output-format?"},
      {{"train", "--jsno"}, "--jsno; did you mean --json?"},
      {{"tune", "--jsno"}, "--jsno; did you mean --json?"},
      {{"predict", "--confidnce=0.9"}, "--confidnce; did you mean --confidence?"},
      {{"audit", "--jsno"}, "--jsno; did you mean --json?"},
      {{"list", "--jsno"}, "--jsno; did you mean --json?"},
      {{"capabilities", "--jsno"}, "--jsno; did you mean --json?"},
      {{"show", "--jsn"}, "--jsn; did you mean --json?"},
      {{"verify", "--sever=h:1"}, "--sever; did you mean --server?"},
      {{"advise", "--eror=0.1"}, "--eror; did you mean --error?"},
      {{"evaluate", "x", "--held_ot=.3"}, "--held_ot; did you mean --held-out?"},
      {{"alias", "set", "--etga=1"}, "--etga; did you mean --etag?"},
      {{"alias", "list", "--jsn"}, "--jsn; did you mean --json?"},
      {{"delete", "--all-version"}, "--all-version; did you mean --all-versions?"},
      {{"keep", "x", "--tlt=7d"}, "--tlt; did you mean --ttl?"},
      {{"drift", "x", "--jsno"}, "--jsno; did you mean --json?"},
      {{"prune", "x", "--unalised"}, "--unalised; did you mean --unaliased?"},
      {{"export", "x", "--outpt=f"}, "--outpt; did you mean --output?"},
      {{"import", "--nmae=x"}, "--nmae; did you mean --name?"},
      {{"inspect", "--jsno"}, "--jsno; did you mean --json?"},
      {{"health", "--timeotu=1"}, "--timeotu; did you mean --timeout?"},
      {{"bench", "--caller=3"}, "--caller; did you mean --callers?"},
      {{"completion", "--colour=auto"}, "--colour; did you mean --color?"},
      {{"sweep", "--landmakrs=10"}, "--landmakrs; did you mean --landmarks?"},
      {{"help", "--sevrer=h:1"}, "--sevrer; did you mean --server?"},
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
  // Every command in the error's list must occur in the table above.
  std::string names = commands.substr(commands.rfind(" are ") + 5);
  names.pop_back();
  for (size_t at = 0; at < names.size(); at = names.find(", ", at) + 2) {
    const std::string name = names.substr(at, names.find(", ", at) - at);
    EXPECT_TRUE(std::any_of(std::begin(cases), std::end(cases),
                            [&](const auto& c) { return c.words[0] == name; }))
        << "tests/e2e/cli_arguments_test.cc: add to the cases of this test a line {{\"" << name
        << "\", \"--jsno\"}, \"--jsno; did you mean --json?\"}, with a misspelt flag of the "
           "command";
    if (names.find(", ", at) == std::string::npos) break;
  }
}

TEST_F(CliArgumentsTest, ACommandThatThereIsNotIsNamedWithTheOneThatWasMeant) {
  const struct {
    std::vector<std::string> words;
    const char* error;
  } cases[] = {
      {{"bulid", "x", "--input=y"}, "phimap has no command 'bulid'; did you mean build? "},
      {{"alias", "lst"},
       "phimap alias has no command 'lst'; did you mean list? the commands are set"},
      {{"alias"},
       "a command of phimap alias is missing; the commands are set, rollback, delete, list"},
      {{"admin"}, "phimap admin is now phimapd admin, with the same flags\n"},
      {{"admin", "check", "--store=x"}, "phimap admin is now phimapd admin, with"},
      {{"admin", "gc", "--help"}, "phimap admin is now phimapd admin, with"},
      {{"help", "bulid"}, "phimap has no command 'bulid'; did you mean build?"},
      {{"help", "alias", "lst"}, "phimap alias has no command 'lst'; did you mean list?"},
  };
  for (const auto& c : cases) {
    const ProcessResult refused = Phimap(c.words);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, StartsWith(absl::StrCat("phimap: ", c.error)));
  }
}

TEST_F(CliArgumentsTest, WhatIsWrongWithAWordIsSaidWithWhatToWrite) {
  const struct {
    std::vector<std::string> words;
    const char* error;
  } cases[] = {
      {{"build", "x", "--label", "--spec=f1(landmarks=2)"},
       "--label takes a value, such as --label=VALUE; the next word, --spec=f1(landmarks=2), "
       "is a flag"},
      {{"build", "x", "--input=y", "--spec"}, "--spec takes a value, such as --spec=VALUE"},
      {{"build", "x", "--input=y", "--mapping=f1(landmarks=2)"}, "--mapping is now --spec\n"},
      {{"sweep", "--input=y", "--mapping", "f1"}, "--mapping is now --spec\n"},
      {{"build", "x", "--spec=f1(landmarks=2)", "--rows=many"},
       "--rows: expected an integer from 1 to 1000000000000, got 'many'\n  phimap build --help"},
      {{"advise", "--error=0.1", "--confidence=0.9", "--points=many"},
       "--points: expected a number, got 'many'\n  phimap advise --help"},
      {{"alias", "set", "letters@prod", "one"},
       "VERSION: expected the number of a version, such as 7, or sha256: and at least 7 digits of "
       "its digest; got 'one'\n"},
      {{"alias", "set", "letters@prod", "0"}, "VERSION: expected the number of a version"},
      {{"transform", "x"}, "--output is required\n  phimap transform --help"},
      {{"build", "x", "--spec=f1(landmarks=2)"}, "--input is required: one or more files of rows"},
      {{"completion", "tcsh"}, "SHELL: expected bash, zsh or fish, got 'tcsh'\n"},
      {{"capabilities", "mappings"},
       "KIND: expected families, kernels, policies or learners, got 'mappings'\n"},
      {{"bench", "x", "--protocol=0"},
       "--protocol: expected native, predict or inference, got '0'\n"},
      {{"list", "a", "b"}, "expected no further word, got 'b'\n  phimap list --help"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(::testing::PrintToString(c.words));
    const ProcessResult refused = Phimap(c.words);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, StartsWith(absl::StrCat("phimap: ", c.error)));
  }
  EXPECT_THAT(RunProcess({PHIMAP_BINARY, "list", "--server=foo:bar"}).err,
              StartsWith("phimap: --server: expected HOST:PORT, unix:PATH, or for several "));
  BuildSmall();
  EXPECT_THAT(
      Phimap({"transform", "small", "--input=" + input_, "--output=/dev/fd/77"}).err,
      HasSubstr(
          "cannot write /dev/fd/77: descriptor 77 is not open; a shell opens it with 77>FILE"));
}

TEST_F(CliArgumentsTest, DashesAndUnderscoresOfFlagsAreAlike) {
  BuildSmall();
  const std::string csv = Phimap({"transform", "small", input_, "--output=-"}).out;
  EXPECT_THAT(csv, StartsWith("f0,f1\n"));
  EXPECT_EQ(
      Phimap({"transform", "small", "--input=" + input_, "--output=-", "--output_format=csv"}).out,
      csv);
  EXPECT_EQ(Phimap({"transform", "small", input_, "--output", "-", "--output_format", "csv"}).out,
            csv);
  EXPECT_EQ(Phimap({"transform", "small", input_, "-o", "-"}).out, csv);
  EXPECT_THAT(Phimap({"list", "--token-file=/nowhere"}).err, HasSubstr("/nowhere"));
  // Arguments after "--" are not flags.
  EXPECT_THAT(Phimap({"show", "--", "--output_format"}).err, HasSubstr("--output_format"));
}

TEST_F(CliArgumentsTest, HelpIsThatOfTheFlag) {
  const auto help = [&](const std::vector<std::string>& words) {
    const ProcessResult result = Phimap(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(help({"help"}), help({"--help"}));
  EXPECT_THAT(help({"help", "transform"}), HasSubstr("--output-format"));
  EXPECT_THAT(help({"help", "alias", "set"}), HasSubstr("--etag"));
}

TEST_F(CliArgumentsTest, ColoursAreForTerminalsThatWantThem) {
  const std::string red = "\x1b[31mphimap:";
  EXPECT_THAT(Phimap({"show", "none"}).err, StartsWith("phimap:"));
  EXPECT_THAT(Phimap({"show", "none", "--color=always"}).err, StartsWith(red));
  // The program `script` gives phimap a terminal.
  const auto on_terminal = [&](const std::string& environment) {
    const std::string command = absl::StrCat(environment, " ", PHIMAP_BINARY,
                                             " --server=", server_.address(), " show none");
    return RunProcess({"/usr/bin/script", "-qec", command, "/dev/null"}).out;
  };
  EXPECT_THAT(on_terminal("TERM=xterm"), HasSubstr(red));
  EXPECT_THAT(on_terminal("TERM=xterm NO_COLOR="), HasSubstr(red));
  for (const char* environment : {"TERM=dumb", "TERM=xterm NO_COLOR=1"}) {
    EXPECT_THAT(on_terminal(environment), Not(HasSubstr("\x1b[3")));
  }
}

// The test passes words to the completion script as bash would. Bash also splits words at "=".
TEST_F(CliArgumentsTest, BashCompletesCommandsFlagsAndValues) {
  const auto complete = [&](const std::string& words, int current) {
    const ProcessResult result = RunProcess(
        {"/bin/bash", "-c",
         absl::StrCat("eval \"$(", PHIMAP_BINARY,
                      " completion bash)\" && complete -p phimap >&2 && ", "COMP_WORDS=(", words,
                      ") COMP_CWORD=", current, " && _phimap && echo \"${COMPREPLY[*]}\"")});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("-F _phimap phimap"));
    return result.out.substr(0, result.out.find('\n'));
  };
  EXPECT_EQ(complete("phimap tra", 1), "transform train");
  EXPECT_EQ(complete("phimap alias ''", 2).substr(0, 24), "set rollback delete list");
  EXPECT_EQ(complete("phimap transform x --output-", 3), "--output-format");
  EXPECT_EQ(complete("phimap transform x --output-format = c", 5), "csv copy");
  EXPECT_EQ(complete("phimap transform x --output-format =", 4), "csv npy copy");
  EXPECT_EQ(complete("phimap transform x --output-format n", 4), "npy");
  EXPECT_EQ(complete("phimap alias set --et", 3), "--etag");
  // Global flags of phimap are completed after any command. Here "list" is the name of a mapping,
  // not a command.
  EXPECT_EQ(complete("phimap build list --serv", 3), "--server");
  // File names are not completed here, because bash completes them itself.
  EXPECT_EQ(complete("phimap transform x --input", 3), "--input");
  EXPECT_EQ(complete("phimap transform x --input ''", 4), "");
  for (const char* shell : {"zsh", "fish"}) {
    const std::string script = Phimap({"completion", shell}).out;
    for (const char* word : {"transform", "output-format", "rollback", "phimap"}) {
      EXPECT_THAT(script, HasSubstr(word));
    }
  }
}

// ProtoJSON writes 64-bit integers as strings. Many JSON readers store numbers as doubles, which
// are exact only up to 2^53.
TEST_F(CliArgumentsTest, JsonHasIntegersOf64BitsAsStrings) {
  BuildSmall();
  const std::string json = Phimap({"show", "small", "--json"}).out;
  EXPECT_THAT(json, HasSubstr("\"number\": \"1\""));
  EXPECT_THAT(json, HasSubstr("\"stream_rows\": \"3\""));
  EXPECT_THAT(json, HasSubstr("\"input_columns\": 2"));
  const std::string seeded =
      Phimap({"build", "seeded", input_, "--spec=random_projection(dimensions=2)", "--json",
              "--seed=18446744073709551615"})
          .out;
  EXPECT_THAT(seeded, HasSubstr("\"18446744073709551615\""));
}

TEST_F(CliArgumentsTest, TheVersionIsPrinted) {
  const ProcessResult phimap = RunProcess({PHIMAP_BINARY, "--version"});
  EXPECT_EQ(phimap.exit_code, 0);
  EXPECT_THAT(phimap.out, MatchesRegex("phimap [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  const ProcessResult phimapd = RunProcess({PHIMAPD_BINARY, "--version"});
  EXPECT_EQ(phimapd.exit_code, 0);
  EXPECT_EQ(phimapd.out, "phimapd" + phimap.out.substr(phimap.out.find(' ')));
}

TEST_F(CliArgumentsTest, AnOutputOfAnUnknownExtensionIsRefusedBeforeAnyWork) {
  for (const char* name : {"o.parquet", "o.npy.gz", "o.csv.zst", "o.npz", "o.svmlight", "o.txt",
                           "o.tsv", "o.CSVX", ".hidden.arrow", "o.v2"}) {
    SCOPED_TRACE(name);
    const std::string output = folder_.path() + "/" + name;
    // Neither the mapping nor the input file exists. Still, the error is about the output, because
    // the output is checked first.
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
      // If the file name has no extension, the output has the format of the input.
      {"features", {}, false},
      {".features", {}, false},
      {"features.", {}, false},
      {"folder.d/features", {}, false},
      // The flag takes precedence over the extension of the file name.
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
