// Tests texts on the command line.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/cli_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

class TextTest : public CliFixture {
 protected:
  TextTest() {
    const char* const words[] = {"sun", "sea", "sand", "surf", "snow", "ice", "frost", "ski"};
    csv_ = "season,text\n";
    for (int i = 0; i < 200; ++i) {
      std::string text;
      for (int k = 1; k < 5; ++k) {
        absl::StrAppend(&text, k > 1 ? ", " : "", words[(i % 2) * 4 + (i / 2 * k + k / 3) % 4]);
      }
      absl::StrAppend(&csv_, i % 2 == 0 ? "summer" : "winter", ",\"", text, "\"\n");
      absl::StrAppend(&lines_, text, "\n");
    }
  }

  ProcessResult Build(const std::string& name, const std::string& input,
                      std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"build", name, "--input=" + input,
                                          "--spec=f2(landmarks=20)",
                                          "--kernel=normalize(spectrum(n=3))"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Phimap(arguments);
  }

  std::string csv_;
  std::string lines_;
};

TEST_F(TextTest, LinesAndColumnsHaveTheSameFeatures) {
  const std::string csv = File(csv_, "texts.csv");
  const std::string lines = File(lines_, "texts.txt");
  ProcessResult done = Build("words", lines);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("strings in, "));
  EXPECT_THAT(done.out, HasSubstr("normalize(spectrum(n=3, unit=character))"));
  ASSERT_EQ(Build("columns", csv, {"--text=text"}).exit_code, 0);

  std::vector<std::string> features;
  for (const char* name : {"words", "columns"}) {
    const std::string out = folder_.path() + "/" + name + ".csv";
    done = Phimap(
        {"transform", name, "--input=" + csv, "--text=text", "--output=" + out, "--residual"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    features.push_back(Read(out));
  }
  EXPECT_EQ(features[0], features[1]);
  // The input and the output are pipes.
  done = Phimap({"transform", "words", "--input=-", "--format=text", "--output=-", "--residual"},
                lines_);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, features[0]);
  EXPECT_EQ(std::count(done.out.begin(), done.out.end(), '\n'), 201);  // a header, and 200 rows
}

TEST_F(TextTest, AVersionOfTextsGoesToAnotherName) {
  ASSERT_EQ(Build("words", File(lines_, "texts.txt")).exit_code, 0);
  const std::string file = folder_.path() + "/words.phimap";
  ASSERT_EQ(Phimap({"export", "words", "--output=" + file}).exit_code, 0);
  const ProcessResult done = Phimap({"import", file, "--name=other"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const auto features = [&](const std::string& name) {
    return Phimap({"transform", name, "--input=-", "--format=text", "--output=-"}, lines_).out;
  };
  EXPECT_EQ(features("other"), features("words"));
}

TEST_F(TextTest, LabeledTextsAreEvaluated) {
  const std::string csv = File(csv_, "texts.csv");
  ASSERT_EQ(Build("words", csv, {"--text=text"}).exit_code, 0);
  const ProcessResult done =
      Phimap({"evaluate", "words", "--input=" + csv, "--text=text", "--label=season", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("\"tested_rows\": \"60\""));
  EXPECT_THAT(done.out, HasSubstr("\"errors\": \"0\""));
}

TEST_F(TextTest, ADryRunOfTextsNeedsNoColumns) {
  const ProcessResult done = Build("words", File(lines_, "texts.txt"), {"--dry-run"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("a build of 200 strings would take"));
}

TEST_F(TextTest, WhatDoesNotSuitIsExplained) {
  const std::string csv = File(csv_, "texts.csv");
  const std::string lines = File(lines_, "texts.txt");
  ASSERT_EQ(Build("words", lines).exit_code, 0);
  const struct {
    std::vector<std::string> arguments;
    const char* message;
  } cases[] = {
      {{"build", "w", "--input=" + lines, "--spec=f2(landmarks=5)", "--kernel=rbf(gamma=1)"},
       "is a kernel of rows of numbers; the stream's examples are text"},
      {{"build", "w", "--input=" + lines, "--spec=f2(landmarks=5)", "--kernel=jaccard(n=2)",
        "--label=x"},
       "a file of texts has neither columns nor labels"},
      {{"build", "w", "--input=" + lines, "--spec=f2(landmarks=5)", "--kernel=jaccard(n=2)",
        "--text=x"},
       "--text names a column of a CSV file"},
      {{"evaluate", "words", "--input=" + lines}, "--text=COLUMN --label=COLUMN"},
      {{"bench", "words"}, "words maps strings"},
      {{"verify", "words"}, "it maps strings"},
      {{"transform", "words", "--input=-", "--format=csv", "--output=-"},
       "the version maps text, got dense"},
  };
  for (const auto& c : cases) {
    const ProcessResult done = Phimap(c.arguments, "a\n1\n");
    EXPECT_NE(done.exit_code, 0) << c.message;
    EXPECT_THAT(done.err, HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace phimap::e2e
