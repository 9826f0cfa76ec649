// Tests the phimap command as a user would run it, against a real server.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/e2e/cli_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

class CliTest : public CliFixture {
 protected:
  ProcessResult BuildLetters(const std::string& name, const std::string& mapping,
                             std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"build",
                                          name,
                                          "--input=" + kLetters,
                                          "--label=label",
                                          "--spec=" + mapping,
                                          "--kernel=rbf(gamma=scale)",
                                          "--standardize"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Phimap(arguments);
  }
  void ExpectNothingStored() {
    const ProcessResult list = Phimap({"list", "--json"});
    EXPECT_EQ(list.exit_code, 0) << list.err;
    EXPECT_THAT(list.out, Not(HasSubstr("newest_version")));
  }
};

std::string FirstLines(const std::string& path, int count) {
  std::ifstream file(path);
  std::string text;
  for (std::string line; count > 0 && std::getline(file, line); --count) text += line + "\n";
  return text;
}

TEST_F(CliTest, BuildsListsShowsAndTransforms) {
  const ProcessResult built = BuildLetters("letters", "f2(landmarks=100)", {"--seed=7"});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  EXPECT_THAT(built.out + built.err, HasSubstr("letters@1"));
  EXPECT_THAT(Phimap({"list"}).out, HasSubstr("letters"));
  const ProcessResult shown = Phimap({"show", "letters@1"});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_THAT(shown.out, HasSubstr("rank"));
  const ProcessResult json = Phimap({"show", "letters", "--json"});
  EXPECT_THAT(json.out, HasSubstr("\"kernel_error\""));

  const std::string input = File(FirstLines(kLetters, 11));
  const ProcessResult mapped = Phimap(
      {"transform", "letters", "--input=" + input, "--label=label", "--output=-", "--timeout=600"});
  ASSERT_EQ(mapped.exit_code, 0) << mapped.err;
  const std::vector<std::string> lines = absl::StrSplit(mapped.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 11u);  // a header and ten rows
  EXPECT_THAT(lines[0], HasSubstr("f0,f1,"));
  const std::vector<std::string> cells = absl::StrSplit(lines[1], ',');
  EXPECT_EQ(cells.size(), 100u);
  double squared = 0;
  for (const std::string& cell : cells) {
    double value = 0;
    ASSERT_TRUE(absl::SimpleAtod(cell, &value)) << cell;
    squared += value * value;
  }
  EXPECT_GT(squared, 0.05);  // ‖F2(x)‖² ≤ K(x, x) = 1
  EXPECT_LT(squared, 1 + 1e-5);

  // With --residual, the last column is the residual: K(x, x) minus the squared norm of the
  // features. Numbers are printed in float32.
  const ProcessResult residual = Phimap(
      {"transform", "letters", "--input=" + input, "--label=label", "--residual", "--output=-"});
  ASSERT_EQ(residual.exit_code, 0) << residual.err;
  const std::vector<std::string> wider = absl::StrSplit(residual.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(wider.size(), 11u);
  const std::vector<std::string> with_residual = absl::StrSplit(wider[1], ',');
  ASSERT_EQ(with_residual.size(), 101u);
  EXPECT_EQ(std::vector<std::string>(with_residual.begin(), with_residual.end() - 1), cells);
  double rho = 0;
  ASSERT_TRUE(absl::SimpleAtod(with_residual.back(), &rho));
  EXPECT_NEAR(rho, std::max(0.0, 1 - squared), 1e-5);
}

TEST_F(CliTest, AVersionIsVerifiedBitForBit) {
  for (const char* mapping :
       {"f1(landmarks=30)", "f2(landmarks=100)", "f2(landmarks=100, serving_type=float64)",
        "f3(landmarks=100, dimensions=40)"}) {
    SCOPED_TRACE(mapping);
    ASSERT_EQ(BuildLetters("letters", mapping).exit_code, 0);
    const ProcessResult verified = Phimap({"verify", "letters"});
    EXPECT_EQ(verified.exit_code, 0) << verified.err;
    EXPECT_THAT(verified.out, HasSubstr("4 reference vectors"));
  }
  EXPECT_EQ(Phimap({"verify", "nothing"}).exit_code, 3);
}

TEST_F(CliTest, ARandomProjectionIsBuiltWithoutAKernelAndVerifiedBitForBit) {
  for (const char* projection : {"gaussian", "sign", "sparse", "orthonormal"}) {
    SCOPED_TRACE(projection);
    const std::string mapping =
        absl::StrCat("random_projection(dimensions=12, projection=", projection, ")");
    const ProcessResult built = Phimap({"build", "letters", "--input=" + kLetters, "--label=label",
                                        "--spec=" + mapping, "--standardize"});
    ASSERT_EQ(built.exit_code, 0) << built.err;
    EXPECT_THAT(built.out, HasSubstr("16 in, 12 out"));
    EXPECT_THAT(built.out, HasSubstr("linear()"));
    EXPECT_THAT(built.out, Not(HasSubstr("landmarks")));
    EXPECT_EQ(Phimap({"verify", "letters"}).exit_code, 0);
  }
  const ProcessResult wide = Phimap({"build", "letters", "--input=" + kLetters, "--label=label",
                                     "--spec=random_projection(dimensions=17, "
                                     "projection=orthonormal)"});
  EXPECT_EQ(wide.exit_code, 5) << wide.err;
  EXPECT_THAT(wide.err, HasSubstr("no more than 16 rows of 16 columns can be orthonormal"));
}

TEST_F(CliTest, FourierFeaturesAreBuiltCertifiedAndVerifiedBitForBit) {
  for (const char* options : {"", ", form=phase", ", orthogonal=true", ", serving_type=float64"}) {
    SCOPED_TRACE(options);
    const ProcessResult built = Phimap(
        {"build", "letters", "--input=" + kLetters, "--label=label", "--standardize",
         absl::StrCat("--spec=fourier(dimensions=64", options, ")"), "--kernel=rbf(gamma=median)"});
    ASSERT_EQ(built.exit_code, 0) << built.err;
    EXPECT_THAT(built.out, HasSubstr("16 in, 64 out"));
    EXPECT_THAT(built.out, HasSubstr("rows that gamma=median was computed from"));
    EXPECT_THAT(built.out, HasSubstr("Rahimi, Recht 2007"));
    EXPECT_THAT(built.out, Not(HasSubstr("landmarks")));
    EXPECT_EQ(Phimap({"verify", "letters"}).exit_code, 0);
  }
  const ProcessResult odd = Phimap({"build", "letters", "--input=" + kLetters, "--label=label",
                                    "--spec=fourier(dimensions=65)", "--kernel=rbf(gamma=scale)"});
  EXPECT_EQ(odd.exit_code, 2) << odd.err;
  EXPECT_THAT(odd.err, HasSubstr("an even number, got 65"));
  const ProcessResult other = Phimap({"build", "letters", "--input=" + kLetters, "--label=label",
                                      "--spec=fourier(dimensions=64)", "--kernel=linear()"});
  EXPECT_EQ(other.exit_code, 2) << other.err;
  EXPECT_THAT(other.err, HasSubstr("fourier requires "));
}

TEST_F(CliTest, KernelPrincipalComponentsAreBuiltCertifiedAndVerifiedBitForBit) {
  for (const char* options : {"", ", centred=false", ", serving_type=float64"}) {
    SCOPED_TRACE(options);
    const ProcessResult built =
        Phimap({"build", "letters", "--input=" + kLetters, "--label=label", "--standardize",
                absl::StrCat("--spec=kpca(landmarks=200, dimensions=10", options, ")"),
                "--kernel=rbf(gamma=scale)"});
    ASSERT_EQ(built.exit_code, 0) << built.err;
    EXPECT_THAT(built.out, HasSubstr("16 in, 10 out"));
    EXPECT_THAT(built.out, HasSubstr("Smola"));
    EXPECT_EQ(Phimap({"verify", "letters"}).exit_code, 0);
  }
  const ProcessResult many =
      Phimap({"build", "letters", "--input=" + kLetters, "--label=label",
              "--spec=kpca(landmarks=20, dimensions=21)", "--kernel=rbf(gamma=scale)"});
  EXPECT_EQ(many.exit_code, 2) << many.err;
  EXPECT_THAT(many.err, HasSubstr("no more components than landmarks"));
}

TEST_F(CliTest, StandardInputAndCsvAndNpyFilesGiveTheSameFeatures) {
  ASSERT_EQ(BuildLetters("letters", "f2(landmarks=50)").exit_code, 0);
  const std::string text = FirstLines(kLetters, 101);
  const std::string input = File(text);
  const std::string npy = folder_.path() + "/features.npy";
  const ProcessResult from_file =
      Phimap({"transform", "letters", "--input=" + input, "--label=label", "--output=-"});
  const ProcessResult from_stdin = Phimap(
      {"transform", "letters", "--input=-", "--format=csv", "--label=label", "--output=-"}, text);
  EXPECT_EQ(from_file.exit_code, 0) << from_file.err;
  EXPECT_EQ(from_file.out, from_stdin.out) << from_stdin.err;
  const ProcessResult to_npy =
      Phimap({"transform", "letters", "--input=" + input, "--label=label", "--output=" + npy});
  EXPECT_EQ(to_npy.exit_code, 0) << to_npy.err;
  EXPECT_GT(std::filesystem::file_size(npy), 100u * 50 * 4);
  // The output of a transform is a matrix like any other, so a mapping can be built from it.
  EXPECT_EQ(
      Phimap({"build", "second", "--input=" + npy, "--spec=f1(landmarks=10)", "--kernel=linear()"})
          .exit_code,
      0);
}

TEST_F(CliTest, TheSameSeedGivesTheSameDigest) {
  ASSERT_EQ(BuildLetters("a", "f3(landmarks=60, dimensions=20)", {"--seed=5"}).exit_code, 0);
  ASSERT_EQ(BuildLetters("b", "f3(landmarks=60, dimensions=20)", {"--seed=5"}).exit_code, 0);
  ASSERT_EQ(BuildLetters("c", "f3(landmarks=60, dimensions=20)", {"--seed=6"}).exit_code, 0);
  const auto client = server_.Connect();
  EXPECT_EQ(client->GetVersion("a")->ref().digest(), client->GetVersion("b")->ref().digest());
  EXPECT_NE(client->GetVersion("a")->ref().digest(), client->GetVersion("c")->ref().digest());
}

struct BadBuild {
  const char* what;
  std::string csv;
  std::vector<std::string> flags;
  int exit_code;
  std::vector<const char*> says;
};

TEST_F(CliTest, BadInputIsNamedAndNothingIsStored) {
  const std::string header = "a,b,label\n";
  std::string good = header;
  for (int i = 0; i < 40; ++i) absl::StrAppend(&good, i, ",", i * i % 7, ",x\n");
  const std::string f2 = "--spec=f2(landmarks=10)";
  const std::string rbf = "--kernel=rbf(gamma=scale)";
  const BadBuild cases[] = {
      {"NaN", header + "1,2,x\n3,nan,x\n", {f2, rbf}, 2, {"nan", "b"}},
      {"infinity", header + "1,inf,x\n", {f2, rbf}, 2, {"inf"}},
      {"text in a number", header + "1,2,x\n3,four,x\n", {f2, rbf}, 2, {"four", "line 3"}},
      {"short row", header + "1,2,x\n3,x\n", {f2, rbf}, 2, {"line 3"}},
      {"empty stream", header, {f2, rbf}, 5, {"phimap: --input: ", "0 rows"}},
      {"few rows",
       header + "1,2,x\n3,4,x\n",
       {f2, rbf},
       5,
       {"phimap: landmarks: ", "2 rows", "10"}},
      {"spec", good, {"--spec=f2(landmark=10)", rbf}, 2, {"phimap: landmark: f2 has no parameter"}},
      {"kernel", good, {f2, "--kernel=rbf(gamma=)"}, 2, {"phimap: --kernel: column 11: "}},
      {"not PSD", good, {f2, "--kernel=poly(degree=2, coef0=-1)"}, 2, {"coef0"}},
      {"landmarks", good, {"--spec=f2(landmarks=9000)", rbf}, 2, {"8192"}},
      {"same names", "a,b,a\n1,2,3\n", {f2, rbf, "--label=b"}, 2, {"columns 1 and 3", "'a'"}},
      {"negative seed",
       good,
       {f2, rbf, "--label=label", "--seed=-1"},
       2,
       {"--seed", "from 0 to 18446744073709551615", "'-1'"}},
      {"large seed",
       good,
       {f2, rbf, "--label=label", "--seed=18446744073709551616"},
       2,
       {"--seed", "from 0 to 18446744073709551615"}},
      {"label", good, {f2, rbf, "--label=lable"}, 2, {"lable", "label"}},
  };
  for (const BadBuild& bad : cases) {
    SCOPED_TRACE(bad.what);
    std::vector<std::string> arguments = {"build", "bad", "--input=" + File(bad.csv),
                                          "--label=label"};
    if (bad.flags.size() > 2) arguments.pop_back();
    arguments.insert(arguments.end(), bad.flags.begin(), bad.flags.end());
    const ProcessResult result = Phimap(arguments);
    EXPECT_EQ(result.exit_code, bad.exit_code) << result.err;
    for (const char* word : bad.says) EXPECT_THAT(result.err, HasSubstr(word));
    EXPECT_EQ(result.out, "");
  }
  ExpectNothingStored();
}

TEST_F(CliTest, UnknownMappingsAndUnreachableServersHaveTheirOwnExitCodes) {
  const ProcessResult unknown = Phimap({"show", "nothing"});
  EXPECT_EQ(unknown.exit_code, 3) << unknown.err;
  EXPECT_THAT(unknown.err, HasSubstr("nothing"));
  const ProcessResult unreachable = RunProcess({PHIMAP_BINARY, "--server=127.0.0.1:1", "list"});
  EXPECT_EQ(unreachable.exit_code, 4) << unreachable.err;
  EXPECT_THAT(unreachable.err, HasSubstr("phimapd"));
}

TEST_F(CliTest, ARollbackIsKeptFromDeletionAndSaysWhatHappenedIfItWasGivenUp) {
  for (const char* mapping : {"f1(landmarks=5)", "f1(landmarks=6)"}) {
    ASSERT_EQ(BuildLetters("letters", mapping).exit_code, 0);
  }
  ASSERT_EQ(Phimap({"alias", "set", "letters@prod", "1"}).exit_code, 0);
  EXPECT_THAT(Phimap({"alias", "rollback", "letters@prod"}).err, HasSubstr("no previous version"));
  ASSERT_EQ(Phimap({"alias", "set", "letters@prod", "2"}).exit_code, 0);
  const ProcessResult refused = Phimap({"delete", "letters@1"});
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_THAT(
      refused.err,
      HasSubstr("--give-up-rollback: version 1 of \"letters\" is the rollback target of prod"));
  EXPECT_EQ(Phimap({"show", "letters@1"}).exit_code, 0);
  const ProcessResult back = Phimap({"alias", "rollback", "letters@prod"});
  EXPECT_EQ(back.exit_code, 0) << back.err;
  ASSERT_EQ(Phimap({"alias", "rollback", "letters@prod"}).exit_code, 0);
  EXPECT_EQ(Phimap({"delete", "letters@1", "--give-up-rollback"}).exit_code, 0);
  const ProcessResult nowhere = Phimap({"alias", "rollback", "letters@prod"});
  EXPECT_EQ(nowhere.exit_code, 5);
  EXPECT_THAT(nowhere.err, HasSubstr("letters@prod cannot go back to version 1: it was deleted"));
  EXPECT_THAT(Phimap({"alias", "list"}).out, HasSubstr("letters@prod"));
}

TEST_F(CliTest, AnUnknownOrMissingCommandIsNamedAndTheCommandsAreListed) {
  const ProcessResult unknown = Phimap({"frob", "--input=x"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("no command 'frob'"));
  EXPECT_THAT(unknown.err,
              HasSubstr("the commands are build, transform, train, tune, predict, list, show, "));
  const ProcessResult missing = Phimap({});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err,
              HasSubstr("the commands are build, transform, train, tune, predict, list, show, "));
  EXPECT_THAT(Phimap({""}).err, HasSubstr("no command ''"));
  EXPECT_EQ(Phimap({"--help"}).exit_code, 0);
  // An error in the flags is not reported as a missing command.
  EXPECT_THAT(RunProcess({PHIMAP_BINARY, "--server"}).err, HasSubstr("--server"));
}

TEST_F(CliTest, ErrorsOfTransformNameWhatWasTypedAndForJsonTheFields) {
  const ProcessResult unknown =
      Phimap({"transform", "nothing", "--input=" + File("a\n1\n"), "--output=-"});
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_EQ(unknown.err, "phimap: no mapping is named \"nothing\"\n");
  EXPECT_EQ(
      Phimap({"transform", "nothing", "--input=" + File("a\n1\n"), "--output=-", "--timeout=0"})
          .exit_code,
      2);
  const ProcessResult program =
      Phimap({"build", "x", "--input=" + File("a\n1\n"), "--spec=f2(landmarks=1)",
              "--kernel=rbf(gama=1)", "--json"});
  EXPECT_EQ(program.exit_code, 2);
  EXPECT_THAT(program.err, HasSubstr("phimap: gama: rbf has no parameter 'gama'"));

  std::string rows = "a,b\n";
  for (int i = 0; i < 3000; ++i) absl::StrAppend(&rows, i % 17, ",", i % 5, "\n");
  ASSERT_EQ(Phimap({"build", "small", "--input=" + File(rows), "--spec=f1(landmarks=10)",
                    "--kernel=linear()"})
                .exit_code,
            0);
  // The features of the last row overflow float32. The rows before it fill more than one request,
  // so the row's number in the input differs from its number in the request.
  const ProcessResult row = Phimap({"transform", "small", "--input=" + File(rows + "1e300,1\n"),
                                    "--output=/dev/null", "--output-format=csv"});
  EXPECT_EQ(row.exit_code, 2) << row.err;
  EXPECT_THAT(row.err, HasSubstr("phimap: --input, row 3001: "));
  EXPECT_THAT(row.err, Not(HasSubstr("request")));
}

TEST_F(CliTest, AnOutputThatIsTheInputIsRefusedAndTheInputStays) {
  const std::string text = "a,b\n1,2\n3,4\n5,6\n";
  const std::string input = File(text);
  ASSERT_EQ(
      Phimap({"build", "small", "--input=" + input, "--spec=f1(landmarks=2)", "--kernel=linear()"})
          .exit_code,
      0);
  const std::string link = folder_.path() + "/link.csv";
  std::filesystem::create_symlink(input, link);
  const std::string dots = folder_.path() + "/./rows.csv";
  for (const std::string& output : {input, link, dots}) {
    SCOPED_TRACE(output);
    // The mapping does not exist. Still, the error is about the output, because the output is
    // checked before anything is read or sent.
    const ProcessResult refused =
        Phimap({"transform", "nothing", "--input=" + input, "--output=" + output});
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("--output=" + output + " is the same file as"));
  }
  EXPECT_EQ(Phimap({"transform", "small", "--input=" + link, "--output=" + input}).exit_code, 2);
  EXPECT_EQ(FirstLines(input, 9), text);
  // A device may be the output even if it exists, because writing to it overwrites nothing.
  EXPECT_EQ(Phimap({"transform", "small", "--input=" + input, "--output=/dev/null"}).exit_code, 0);
}

TEST_F(CliTest, ATransformOfTheWrongWidthLeavesNoOutputFile) {
  ASSERT_EQ(BuildLetters("letters", "f2(landmarks=50)").exit_code, 0);
  const std::string output = folder_.path() + "/out.csv";
  const ProcessResult result =
      Phimap({"transform", "letters", "--input=" + File("a,b\n1,2\n"), "--output=" + output});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("16"));
  EXPECT_FALSE(std::filesystem::exists(output));
}

TEST_F(CliTest, AdvisesByTheGoldenValues) {
  const ProcessResult advice = Phimap({"advise", "--margin=0.1", "--error=0.01",
                                       "--confidence=0.95", "--points=1000", "--classes=10"});
  ASSERT_EQ(advice.exit_code, 0) << advice.err;
  for (const char* number : {"82,397", "43,225", "165,903", "1,110,708", "241,285", "21,399",
                             "4,282", "no number", "F3 helps", "8,192"}) {
    EXPECT_THAT(advice.out, HasSubstr(number));
  }
  const ProcessResult json = Phimap({"advise", "--margin=0.5", "--error=0.1", "--confidence=0.95",
                                     "--points=1000", "--alpha=0.05", "--json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  for (const char* text : {"\"dimensions\": \"1350\"", "\"dimensions\": \"4093\"",
                           "\"proposal\": \"f2(landmarks=215)\"", "\"f3_helps\": false"}) {
    EXPECT_THAT(json.out, HasSubstr(text));
  }
}

TEST_F(CliTest, AdviseNamesTheOptionThatIsOutOfRange) {
  const ProcessResult percent =
      Phimap({"advise", "--margin=0.1", "--error=0.01", "--confidence=95"});
  EXPECT_EQ(percent.exit_code, 2);
  EXPECT_THAT(percent.err,
              HasSubstr("phimap: --confidence: expected 1e-09 to 0.999999999, got 95"));
  const ProcessResult kernel =
      Phimap({"advise", "--margin=0.1", "--error=0.01", "--confidence=0.9", "--kernel-error=7"});
  EXPECT_EQ(kernel.exit_code, 2);
  EXPECT_THAT(kernel.err, HasSubstr("phimap: --kernel-error: "));
  EXPECT_EQ(Phimap({"advise", "--margin=0.1"}).exit_code, 2);
}

TEST_F(CliTest, ADryRunSaysWhatABuildWouldTakeAndBuildsNothing) {
  const ProcessResult counted = BuildLetters("letters", "f2(landmarks=100)", {"--dry-run"});
  ASSERT_EQ(counted.exit_code, 0) << counted.err;
  EXPECT_THAT(counted.out, HasSubstr("a build of 20,000 rows of 16 columns would take"));
  const std::vector<std::string> given = {"build",
                                          "letters",
                                          "--dry-run",
                                          "--rows=20000",
                                          "--columns=16",
                                          "--spec=f2(landmarks=100)",
                                          "--kernel=rbf(gamma=scale)",
                                          "--standardize"};
  EXPECT_EQ(Phimap(given).out, counted.out);
  std::vector<std::string> json = given;
  json.push_back("--json");
  EXPECT_THAT(Phimap(json).out, HasSubstr("\"peak_memory_bytes\": "));
  ExpectNothingStored();
}

TEST_F(CliTest, ADryRunNamesWhatIsMissingOrWrong) {
  const std::vector<std::string> base = {"build", "letters", "--spec=f2(landmarks=100)",
                                         "--kernel=rbf(gamma=scale)"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return Phimap(more);
  };
  EXPECT_THAT(with({}).err, HasSubstr("--input is required"));
  EXPECT_EQ(with({}).exit_code, 2);
  EXPECT_THAT(with({"--dry-run", "--rows=100"}).err, HasSubstr("--dry-run needs --input"));
  EXPECT_THAT(with({"--input=" + kLetters, "--rows=100"}).err, HasSubstr("is for --dry-run"));
  const ProcessResult few = with({"--dry-run", "--rows=99", "--columns=3"});
  EXPECT_EQ(few.exit_code, 5) << few.err;
  EXPECT_THAT(few.err, HasSubstr("99 rows, fewer than the 100 landmarks"));
  const ProcessResult wide = with({"--dry-run", "--rows=1000", "--columns=70000"});
  EXPECT_EQ(wide.exit_code, 2) << wide.err;
  EXPECT_THAT(wide.err, HasSubstr("--columns: expected a number of columns, 1 to 65536, got"));
}

}  // namespace
}  // namespace phimap::e2e
