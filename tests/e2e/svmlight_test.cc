// Tests sparse rows on the command line. The results are compared with those of the same rows in a
// CSV file.
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "phimap/v1/learning_service.pb.h"
#include "tests/e2e/cli_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

constexpr int kSvmlightColumns = 40;

class SvmlightTest : public CliFixture {
 protected:
  SvmlightTest() {
    std::mt19937_64 random(5);
    std::bernoulli_distribution named(0.1);
    csv_ = "label";
    for (int j = 0; j < kSvmlightColumns; ++j) absl::StrAppend(&csv_, ",x", j);
    csv_ += "\n";
    for (int i = 0; i < 300; ++i) {
      // In each class, one column is never 0 that is always 0 in the other class.
      const int label = i % 2 == 0 ? 1 : -1;
      absl::StrAppend(&csv_, label);
      absl::StrAppend(&sparse_, label > 0 ? "+1" : "-1");
      for (int j = 0; j < kSvmlightColumns; ++j) {
        const bool marker = j == (label > 0 ? 3 : 30);
        if (!marker && (j == 3 || j == 30 || !named(random))) {
          csv_ += ",0";
          continue;
        }
        const double value = marker ? 2 : static_cast<double>(random() % 16) / 8 - 1;
        absl::StrAppend(&csv_, ",", value);
        absl::StrAppend(&sparse_, " ", j + 1, ":", value);
      }
      csv_ += "\n";
      sparse_ += "\n";
    }
  }

  ProcessResult Build(const std::string& name, const std::string& input,
                      std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "build",   name, "--input=" + input, "--spec=f2(landmarks=30)", "--kernel=rbf(gamma=0.1)",
        "--seed=4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Phimap(arguments);
  }

  std::string csv_;
  std::string sparse_;
};

TEST_F(SvmlightTest, FeaturesHaveTheBytesOfThoseFromTheDenseFile) {
  const std::string csv = File(csv_, "rows.csv");
  const std::string sparse = File(sparse_, "rows.svmlight");
  ProcessResult done = Build("dense", csv, {"--label=label"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  done = Build("sparse", sparse, {});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  std::string features[2][2];
  for (const int version : {0, 1}) {
    for (const int input : {0, 1}) {
      const std::string out = folder_.path() + absl::StrCat("/", version, input, ".npy");
      std::vector<std::string> arguments = {"transform", version == 0 ? "dense" : "sparse",
                                            "--input=" + (input == 0 ? csv : sparse),
                                            "--output=" + out};
      if (input == 0) arguments.push_back("--label=label");
      done = Phimap(arguments);
      ASSERT_EQ(done.exit_code, 0) << done.err;
      features[version][input] = Read(out);
    }
  }
  // The sparse and the dense rows have the same features, no matter from which of them the version
  // was built. EXPECT_TRUE is used because EXPECT_EQ would print the files.
  for (const auto& of_version : features) {
    EXPECT_GT(of_version[0].size(), 300 * 20 * sizeof(float));
    EXPECT_TRUE(of_version[0] == of_version[1]);
  }
}

TEST_F(SvmlightTest, LabelsOfTheFileAreLearntFrom) {
  const std::string sparse = File(sparse_, "rows.libsvm");
  ASSERT_EQ(Build("classes", sparse, {}).exit_code, 0);
  const ProcessResult done =
      Phimap({"evaluate", "classes", "--input=" + sparse, "--folds=5", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  v1::Evaluation evaluation;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(done.out, &evaluation).ok());
  ASSERT_EQ(evaluation.classes_size(), 2);
  EXPECT_EQ(evaluation.tested_rows(), 300);
  EXPECT_EQ(evaluation.errors(), 0);
  // A learner that uses the kernel itself also accepts sparse rows.
  const ProcessResult kernel = Phimap({"evaluate", "classes", "--input=" + sparse,
                                       "--learner=kernel_svm(C=1)", "--folds=5", "--json"});
  ASSERT_EQ(kernel.exit_code, 0) << kernel.err;
}

TEST_F(SvmlightTest, ColumnsAreThoseOfTheVersionOrTheCommandLine) {
  ProcessResult done = Phimap({"build", "piped", "--input=-", "--format=svmlight", "--columns=50",
                               "--spec=f2(landmarks=30)", "--kernel=rbf(gamma=0.1)"},
                              sparse_);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  // The largest index in the file may be smaller than the version's number of columns.
  done = Phimap({"transform", "piped", "--input=-", "--format=svmlight", "--output=-"}, sparse_);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(std::count(done.out.begin(), done.out.end(), '\n'), 301);
}

TEST_F(SvmlightTest, OptionsOfAnotherFormatAreRefusedAndSayWhy) {
  const std::string sparse = File(sparse_, "rows.svm");
  const std::string csv = File(csv_, "rows.csv");
  ProcessResult done = Build("a", sparse, {"--label=label"});
  EXPECT_NE(done.exit_code, 0);
  EXPECT_THAT(done.err, HasSubstr("each line begins with its label"));
  done = Build("a", csv, {"--label=label", "--zero-based"});
  EXPECT_NE(done.exit_code, 0);
  EXPECT_THAT(done.err, HasSubstr("--zero-based is for svmlight files"));
  done = Build("a", csv, {"--label=label", "--columns=3"});
  EXPECT_NE(done.exit_code, 0);
  EXPECT_THAT(done.err, HasSubstr("has no column \"3\"; its columns are \"label\""));
  ASSERT_EQ(Build("a", sparse, {}).exit_code, 0);
  done = Phimap({"transform", "a", "--input=" + sparse, "--output=" + folder_.path() + "/o.svm"});
  EXPECT_NE(done.exit_code, 0);
  EXPECT_THAT(
      done.err,
      HasSubstr("features are written as .csv or .npy, or as .copy for PostgreSQL, not as .svm;"));
  done = Phimap({"evaluate", "a", "--input=" + csv});
  EXPECT_NE(done.exit_code, 0);
  EXPECT_THAT(done.err, HasSubstr("--label is required for a CSV file"));
}

}  // namespace
}  // namespace phimap::e2e
