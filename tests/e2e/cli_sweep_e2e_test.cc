// Tests a sweep over specs that is stopped and continued.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/e2e/cli_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

class CliSweepTest : public CliFixture {
 protected:
  // Returns rows of two classes that no line separates.
  std::string Rows() {
    std::string text = "a,b,y\n";
    for (int i = 0; i < 400; ++i) {
      const int a = i * 7 % 41 - 20;
      const int b = i * 11 % 37 - 18;
      absl::StrAppend(&text, a, ",", b, ",", a * a + b * b < 200 ? "in" : "out", "\n");
    }
    return File(text);
  }
  ProcessResult Sweep(std::vector<std::string> more) {
    more.insert(more.begin(), {"sweep", "--input=" + Rows(), "--label=y",
                               "--kernel=rbf(gamma=0.01)", "--output=" + output_});
    return Phimap(more);
  }
  const std::string output_ = folder_.path() + "/sweep.jsonl";
};

TEST_F(CliSweepTest, EachPointIsALineAndIsNotMeasuredAgain) {
  const ProcessResult first = Sweep({"--spec=f1,f2", "--landmarks=10,30", "--seed=0,1"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("8 points in " + output_ + ", 0 of them from earlier runs"));
  EXPECT_THAT(first.out, HasSubstr("f2(landmarks=30)"));
  const std::string lines = Read(output_);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 8);
  EXPECT_THAT(lines, HasSubstr("{\"format\": \"phimap-sweep-1\", \"spec\": \"f2(landmarks=30)\", "
                               "\"kernel\": \"rbf(gamma=0.01)\", \"seed\": 1, "));
  // The command line chooses no learner, so this is the server's default.
  EXPECT_THAT(lines, HasSubstr("\"learner\": \"linear_svm()\""));
  EXPECT_THAT(lines, HasSubstr("\"family\": \"f1\", \"landmarks\": 10, \"policy\": \"uniform\", "));
  // The sweep leaves no mapping behind.
  EXPECT_THAT(Phimap({"list"}).out, Not(HasSubstr("sweep-")));
  // A sweep over more points reuses the points of earlier runs. Its table shows the old and the new
  // ones.
  const ProcessResult more =
      Sweep({"--spec=f1,f2,fourier", "--landmarks=10,30", "--dimensions=16", "--seed=0,1"});
  ASSERT_EQ(more.exit_code, 0) << more.err;
  EXPECT_THAT(more.err, HasSubstr("10 points in " + output_ + ", 8 of them from earlier runs"));
  EXPECT_EQ(Read(output_).substr(0, lines.size()), lines);
}

TEST_F(CliSweepTest, APointThatFailsIsNamedAndThoseBeforeItAreKept) {
  // Only the build finds that no weight is left.
  const ProcessResult failed =
      Sweep({"--spec=f1(landmarks=10),kpca(landmarks=10, dimensions=2, rounding=1e-9)"});
  EXPECT_EQ(failed.exit_code, 5) << failed.err;
  EXPECT_THAT(failed.err, HasSubstr("leaves component 1 without any weight"));
  const std::string lines = Read(output_);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1);
  EXPECT_THAT(Phimap({"list"}).out, Not(HasSubstr("sweep-")));
}

TEST_F(CliSweepTest, WhatIsWrongIsSaidBeforeAnythingIsBuilt) {
  EXPECT_THAT(Sweep({"--spec=f1", "--landmarks=10", "--seed=0,x"}).err,
              HasSubstr("--seed: expected integers from 0 to 2^53"));
  EXPECT_THAT(Phimap({"sweep", "--input=-", "--format=csv", "--label=y", "--spec=f1",
                      "--output=" + output_},
                     "a,y\n1,u\n")
                  .err,
              HasSubstr("needs files"));
  EXPECT_THAT(Sweep({"--spec=fourier", "--landmarks=10"}).err,
              HasSubstr("--landmarks: no family of --spec=fourier takes it"));
  // The last of three specs is refused, and so are a parameter and a kernel.
  const ProcessResult too_many =
      Sweep({"--spec=f1,f3", "--landmarks=10", "--dimensions=5,30", "--seed=0,1"});
  EXPECT_EQ(too_many.exit_code, 2) << too_many.err;
  EXPECT_THAT(too_many.err, HasSubstr("--spec: f3(landmarks=10, dimensions=30) of "
                                      "rbf(gamma=0.01): dimensions: "));
  EXPECT_THAT(Sweep({"--spec=f1(landmarks=10),f2(landmark=10)"}).err,
              HasSubstr("--spec: f2(landmark=10) of rbf(gamma=0.01): landmark: "));
  EXPECT_THAT(Sweep({"--spec=f1(landmarks=401)"}).err,
              HasSubstr("the stream has 400 rows, fewer than the 401 landmarks"));
  EXPECT_EQ(Read(output_), "");
  const ProcessResult nowhere = Phimap({"sweep", "--input=" + Rows(), "--label=y", "--spec=f1",
                                        "--landmarks=10", "-o", folder_.path() + "/none/x.jsonl"});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("--output: cannot write " + folder_.path() +
                                     "/none/x.jsonl: No such file or directory"));
  File("no point\n", "sweep.jsonl");
  EXPECT_THAT(Sweep({"--spec=f1", "--landmarks=10"}).err, HasSubstr("sweep.jsonl, line 1"));
}

}  // namespace
}  // namespace phimap::e2e
