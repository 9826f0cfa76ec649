// Tests column names on the command line.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/cpp/client.h"
#include "gtest/gtest.h"
#include "tests/e2e/cli_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

class ColumnNamesTest : public CliFixture {
 protected:
  ColumnNamesTest() {
    for (int i = 0; i < 60; ++i) {
      absl::StrAppend(&rows_, "\"r,", i, "\",", std::sin(i), ",", std::cos(3 * i), ",", i % 7 / 7.0,
                      i % 2 == 0 ? ",odd\n" : ",even\n");
    }
    const ProcessResult built =
        Phimap({"build", "demo", "--input=" + File(kHead + rows_), "--label=class", "--exclude=id",
                "--spec=f2(landmarks=10)", "--kernel=rbf(gamma=1)"});
    EXPECT_EQ(built.exit_code, 0) << built.err;
  }

  ProcessResult Transform(const std::string& input, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"transform", "demo", "--input=" + input,
                                          "--output=" + Output()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Phimap(arguments);
  }
  std::string Output() { return folder_.path() + "/features.csv"; }

  static constexpr char kHead[] = "id,x,y,z,class\n";
  std::string rows_;
};

TEST_F(ColumnNamesTest, ALabelAndAnIdNeedNotBeNamedAgain) {
  const ProcessResult mapped = Transform(File(kHead + rows_));
  EXPECT_EQ(mapped.exit_code, 0) << mapped.err;
  EXPECT_THAT(mapped.err, HasSubstr("got 5 columns; \"id\", \"class\" are not among"));
  const std::string features = Read(Output());
  EXPECT_EQ(Transform(File(kHead + rows_), {"--label=class", "--exclude=id"}).exit_code, 0);
  EXPECT_EQ(Read(Output()), features);
}

TEST_F(ColumnNamesTest, SwappedAndRenamedColumnsAreErrorsWithBothLists) {
  const std::string swapped = File("id,y,x,z,class\n" + rows_, "swapped.csv");
  ProcessResult refused = Transform(swapped);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("\"x\", \"y\", \"z\""), HasSubstr("\"y\", \"x\", \"z\""),
                                 HasSubstr("--by-name")));
  EXPECT_EQ(Phimap({"evaluate", "demo", "--input=" + swapped, "--label=class"}).exit_code, 2);
  EXPECT_EQ(Transform(swapped, {"--columns=x,y,z"}).exit_code, 0);
  const std::string features = Read(Output());
  EXPECT_EQ(Transform(swapped, {"--by-name"}).exit_code, 0);
  EXPECT_EQ(Read(Output()), features);
  refused = Transform(File("id,x,u,z,class\n" + rows_, "renamed.csv"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("\"y\" is missing"), HasSubstr("\"u\"")));
}

TEST_F(ColumnNamesTest, AHeaderOfKernelValuesIsRefusedInTheWordsOfTheCommandLine) {
  const ProcessResult refused = Phimap({"build", "gram", "--input=" + File("a,b\n1,0.5\n0.5,1\n"),
                                        "--spec=f2(landmarks=2)", "--kernel=precomputed()"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(
      refused.err,
      "phimap: --input: expected no names of columns, because the rows are kernel values, got "
      "2 names\n  the header of a CSV file names its columns; give such rows as an npy file, "
      "which has no names\n");
}

TEST_F(ColumnNamesTest, APassedColumnStandsBesideItsRow) {
  const ProcessResult mapped =
      Transform(File(kHead + rows_), {"--passthrough=id", "--passthrough=class"});
  EXPECT_EQ(mapped.exit_code, 0) << mapped.err;
  EXPECT_THAT(Read(Output()), AllOf(StartsWith("id,class,f0,"), HasSubstr("\n\"r,0\",odd,"),
                                    HasSubstr("\n\"r,59\",even,")));
  const ProcessResult npy = Phimap({"transform", "demo", "--input=" + File(kHead + rows_),
                                    "--passthrough=id", "--output=" + folder_.path() + "/f.npy"});
  EXPECT_EQ(npy.exit_code, 2);
  EXPECT_THAT(npy.err, HasSubstr("--passthrough"));
}

TEST_F(ColumnNamesTest, TheClientOfCppSaysWhichNamesDiffer) {
  const auto connected = client::Client::Connect(server_.address(), {}).value();
  client::Client& client = *connected;
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  const client::ExampleBlock rows = client::MakeRowBlock(absl::Span<const double>(values), 3);
  const auto which_differ = AllOf(HasSubstr("\"y\" is missing, and \"u\" is not among"),
                                  HasSubstr("expected the 3 of demo: \"x\", \"y\", \"z\""),
                                  Not(HasSubstr("\"x\", \"u\", \"z\"")));
  EXPECT_TRUE(client.Transform("demo", rows, {.column_names = {"x", "y", "z"}}).ok());
  EXPECT_TRUE(client.Transform("demo", rows).ok());
  EXPECT_THAT(
      std::string(
          client.Transform("demo", rows, {.column_names = {"x", "u", "z"}}).status().message()),
      which_differ);
  const auto stream = [&](std::vector<std::string> names) {
    client::MemoryRowSource source(rows, std::move(names));
    return client
        .TransformStream("demo", source, [](const client::RowBlock&) { return absl::OkStatus(); })
        .status();
  };
  EXPECT_TRUE(stream({"x", "y", "z"}).ok());
  EXPECT_THAT(std::string(stream({"x", "u", "z"}).message()), which_differ);
}

TEST_F(ColumnNamesTest, AFileWithoutNamesSaysSo) {
  const std::string sparse = File("1 1:1 2:0.5\n-1 3:1\n", "rows.svmlight");
  const ProcessResult mapped = Transform(sparse);
  EXPECT_EQ(mapped.exit_code, 0) << mapped.err;
  EXPECT_THAT(mapped.err,
              HasSubstr("cannot check that the columns are those of demo, in the same order"));
}

TEST_F(ColumnNamesTest, TheNamesGoWithAnExportedVersion) {
  const std::string file = folder_.path() + "/demo.phimap";
  ASSERT_EQ(Phimap({"export", "demo", "--output=" + file}).exit_code, 0);
  EXPECT_THAT(Phimap({"inspect", file}).out, HasSubstr("\"x\", \"y\", \"z\""));
  ASSERT_EQ(Phimap({"import", file, "--name=elsewhere"}).exit_code, 0);
  EXPECT_THAT(Phimap({"show", "elsewhere"}).out, HasSubstr("\"x\", \"y\", \"z\""));
}

}  // namespace
}  // namespace phimap::e2e
