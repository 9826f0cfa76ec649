// Tests `phimap train`, `tune` and `predict` as a user would run them, against a real server and on
// real data.
#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "phimap/v1/mapping.pb.h"
#include "tests/e2e/cli_fixture.h"
#include "tests/support/matchers.h"
#include "tests/support/source_dir.h"

namespace phimap::e2e {
namespace {

const std::string kCancer = testing::SourcePath("lab/data/cancer.csv");

class TrainTest : public CliFixture {
 protected:
  v1::Version Must(std::vector<std::string> words) {
    words.push_back("--json");
    const ProcessResult done = Phimap(words);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    v1::Version version;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(done.out, &version).ok()) << done.out;
    return version;
  }
};

TEST_F(TrainTest, AVersionIsTrainedFromAFileAlone) {
  const v1::Version version =
      Must({"train", "cancer", "--input=" + kCancer, "--label=label", "--spec=f2(landmarks=60)",
            "--kernel=rbf(gamma=scale)", "--standardize"});
  EXPECT_EQ(version.ref().number(), 1);
  EXPECT_EQ(version.column_names_size(), version.input_columns());
  const v1::TrainingReport& report = version.head().report();
  // 3 to 4 % of all rows. But equal rows share a part, and those that are equal to many others, the
  // easiest, are trained on: the few test rows are harder.
  EXPECT_LT(report.classes().error().value(), 0.25);
  EXPECT_EQ(report.parts().train() + report.parts().validate() + report.parts().calibrate_link() +
                report.parts().calibrate_sets() + report.parts().test(),
            683);
  const ProcessResult predicted =
      Phimap({"predict", "cancer", "--input=" + kCancer, "--label=label", "--passthrough=label"});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  const std::vector<std::string> lines = absl::StrSplit(predicted.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 684);
  EXPECT_EQ(lines[0], "label,predicted");
  int right = 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = absl::StrSplit(lines[i], ',');
    ASSERT_EQ(cells.size(), 2);
    right += cells[0] == cells[1] ? 1 : 0;
  }
  EXPECT_GT(right, 683 * 0.93);
}

TEST_F(TrainTest, TuningSaysWhatItTriedAndKeepsToItsTime) {
  const ProcessResult tuned = Phimap({"tune", "cancer", "--input=" + kCancer, "--label=label",
                                      "--budget=20s", "--max-landmarks=100"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(tuned.out, HasSubstr("cancer@1\n"));
  EXPECT_THAT(tuned.out, HasSubstr("tried "));
  EXPECT_THAT(tuned.out, HasSubstr("us per row"));
  EXPECT_THAT(tuned.out, HasSubstr("f2(landmarks=100"));
  const v1::Version version = Must({"show", "cancer@1"});
  EXPECT_GT(version.head().report().trials_size(), 20);
  EXPECT_LT(version.head().report().classes().error().value(), 0.12);
}

// Of 400 rows, the column `use` gives 50 to each part that is held and leaves the others open;
// these are trained on, since the parts have rows already.
TEST_F(TrainTest, ColumnsSayWhatARowIsForAndHowMuchItCounts) {
  const std::string path = folder_.path() + "/known.csv";
  {
    std::ofstream file(path);
    file << "x,y,class,w,use\n";
    for (int i = 0; i < 400; ++i) {
      const char* const uses[] = {"validate", "calibrate-link", "calibrate-sets", "test"};
      const double x = (i * 37 % 101) / 50.0 - 1;
      const double y = (i * 53 % 97) / 48.0 - 1;
      file << x << "," << y << "," << (x * y > 0 ? "same" : "other") << "," << 1 + i % 2 << ","
           << (i % 8 < 4 ? uses[i % 8] : "") << "\n";
    }
  }
  const v1::Version version =
      Must({"train", "known", "--input=" + path, "--label=class", "--weights=w", "--parts=use",
            "--spec=f2(landmarks=40)", "--kernel=rbf(gamma=1)"});
  EXPECT_EQ(version.input_columns(), 2);
  const v1::TrainingReport::Parts& parts = version.head().report().parts();
  EXPECT_EQ(parts.train(), 200);
  EXPECT_EQ(parts.validate(), 50);
  EXPECT_EQ(parts.test(), 50);
  const ProcessResult unweighable =
      Phimap({"train", "known", "--input=" + path, "--label=class", "--weights=w", "--parts=use",
              "--spec=f2(landmarks=40)", "--kernel=rbf(gamma=1)", "--learner=logistic()"});
  EXPECT_EQ(unweighable.exit_code, 2);
  EXPECT_THAT(unweighable.err, HasSubstr("weights"));
}

// The number depends on the first of six columns alone, so the others get longer scales.
TEST_F(TrainTest, ScalesAreLearnedFromTheLabels) {
  std::string text = "a,b,c,d,e,f,y\n";
  for (int i = 0; i < 600; ++i) {
    double first = 0;
    for (int j = 0; j < 6; ++j) {
      const double x = (i * (37 + 16 * j) % 101) / 50.0 - 1;
      if (j == 0) first = x;
      absl::StrAppend(&text, x, ",");
    }
    absl::StrAppend(&text, std::sin(4 * first), "\n");
  }
  const std::string path = File(text, "scales.csv");
  const std::vector<std::string> words = {"train",           "scaled",
                                          "--input=" + path, "--label=y",
                                          "--task=numbers",  "--spec=f2(landmarks=60)",
                                          "--standardize",   "--kernel=rbf(gamma=scale)"};
  const v1::Version plain = Must(words);
  std::vector<std::string> more = words;
  more.push_back("--learn-scales");
  const v1::Version scaled = Must(more);
  EXPECT_THAT(scaled.kernel_text(), HasSubstr("scales=["));
  EXPECT_LT(scaled.head().report().numbers().rmse().value(),
            0.5 * plain.head().report().numbers().rmse().value());
}

// The stopped run is one that had 0.01 s; the rows that it has written are then set to 7,000 and a
// torn line, as a kill leaves them.
TEST_F(TrainTest, PredictionsContinueWhereTheyStopped) {
  Must({"train", "letters", "--input=" + kLetters, "--label=label", "--spec=f2(landmarks=50)",
        "--kernel=rbf(gamma=scale)", "--standardize"});
  const std::string output = folder_.path() + "/answers.csv";
  const auto predict = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"predict",
                                      "letters",
                                      "--input=" + kLetters,
                                      "--label=label",
                                      "--output=" + output,
                                      "--passthrough=label",
                                      "--probabilities"};
    words.insert(words.end(), more.begin(), more.end());
    return Phimap(words);
  };
  ASSERT_EQ(predict({}).exit_code, 0);
  const std::string whole = Read(output);
  std::filesystem::remove(output);
  EXPECT_NE(predict({"--resume", "--timeout=0.01"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(output));
  size_t end = 0;
  for (int line = 0; line < 7001; ++line) end = whole.find('\n', end) + 1;
  std::ofstream(output + ".partial") << whole.substr(0, end + 9);
  EXPECT_EQ(predict({"--resume", "--scores"}).exit_code, 2);  // another request
  const ProcessResult continued = predict({"--resume"});
  ASSERT_EQ(continued.exit_code, 0) << continued.err;
  EXPECT_THAT(continued.err, HasSubstr("7,000 of them in earlier runs"));
  EXPECT_EQ(Read(output), whole);
  EXPECT_FALSE(std::filesystem::exists(output + ".resume"));
}

TEST_F(TrainTest, NpyHasTheNumbersOfTheCsvAndIndicesOfClasses) {
  const v1::Version version =
      Must({"train", "cancer", "--input=" + kCancer, "--label=label", "--spec=f2(landmarks=30)",
            "--kernel=rbf(gamma=scale)", "--standardize"});
  const auto predict = [&](const std::string& name) {
    const std::string path = folder_.path() + "/" + name;
    const ProcessResult done = Phimap({"predict", "cancer", "--input=" + kCancer, "--label=label",
                                       "--output=" + path, "--scores", "--probabilities"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return Read(path);
  };
  const std::vector<std::string> lines =
      absl::StrSplit(predict("answers.csv"), '\n', absl::SkipEmpty());
  const std::string npy = predict("answers.npy");
  ASSERT_EQ(lines.size(), 684);
  constexpr size_t kColumns = 4;  // the class, one score, and two probabilities
  const size_t numbers = 683 * kColumns * sizeof(double);
  ASSERT_GT(npy.size(), numbers);
  std::vector<double> values(683 * kColumns);
  std::memcpy(values.data(), npy.data() + npy.size() - numbers, numbers);
  for (size_t i = 0; i < 683; ++i) {
    const std::vector<std::string> cells = absl::StrSplit(lines[i + 1], ',');
    ASSERT_EQ(cells.size(), kColumns);
    EXPECT_EQ(version.head().class_names(static_cast<int>(values[i * kColumns])), cells[0]);
    for (size_t j = 1; j < kColumns; ++j) {
      EXPECT_EQ(values[i * kColumns + j], std::stod(cells[j]));
    }
  }
  const ProcessResult sets =
      Phimap({"predict", "cancer", "--input=" + kCancer, "--label=label",
              "--output=" + folder_.path() + "/sets.npy", "--confidence=0.9"});
  EXPECT_EQ(sets.exit_code, 2);
  EXPECT_THAT(sets.err, HasSubstr("write CSV"));
}

// At a confidence that so few rows cannot reach, each set has all classes.
TEST_F(TrainTest, ABarInTheNameOfAClassIsEscapedInASet) {
  std::string text = "x,y\n";
  for (int i = 0; i < 300; ++i)
    absl::StrAppend(&text, i % 97, ",", i % 97 < 50 ? "a|b" : "c", "\n");
  const std::string path = File(text, "bar.csv");
  Must({"train", "bar", "--input=" + path, "--label=y", "--spec=f2(landmarks=10)",
        "--kernel=rbf(gamma=scale)"});
  const ProcessResult predicted =
      Phimap({"predict", "bar", "--input=" + path, "--label=y", "--confidence=0.9999"});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_THAT(predicted.out, HasSubstr("a|b,a\\|b|c\n"));
}

TEST_F(TrainTest, FlagsThatNeedASpecSaySo) {
  for (const char* flag : {"--kernel=rbf(gamma=1)", "--standardize", "--learn-scales"}) {
    const ProcessResult refused =
        Phimap({"train", "cancer", "--input=" + kCancer, "--label=label", flag});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr("give --spec too"));
  }
  const ProcessResult budget =
      Phimap({"tune", "cancer", "--input=" + kCancer, "--label=label", "--budget=25h"});
  EXPECT_EQ(budget.exit_code, 2);
  EXPECT_THAT(budget.err, HasSubstr("--budget"));
}

}  // namespace
}  // namespace phimap::e2e
