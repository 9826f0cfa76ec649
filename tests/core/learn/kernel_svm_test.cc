// Compares the kernel SVM with libsvm's own programs, which compute the kernel themselves.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/kernel/kernel_expression.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/learn/labeled_data.h"
#include "tests/core/learn/svm_tool.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

KernelInput Kernel(const std::string& text) {
  return {.kernel = *KernelExpression::Parse(text), .map = nullptr};
}

// A model as svm-train writes it: f(x) = Σ coefficient·exp(−γ‖row − x‖²) + offset, positive for
// label +1.
struct ToolModel {
  double offset = 0;
  double sign = 1;
  std::vector<double> coefficients;
  std::vector<std::vector<double>> rows;

  double Value(const double* x, int64_t columns, double gamma) const {
    double sum = offset;
    for (size_t s = 0; s < rows.size(); ++s) {
      double square = 0;
      for (int64_t k = 0; k < columns; ++k) square += std::pow(rows[s][k] - x[k], 2);
      sum += coefficients[s] * std::exp(-gamma * square);
    }
    return sign * sum;
  }
};

double Number(absl::string_view text) {
  double value = 0;
  EXPECT_TRUE(absl::SimpleAtod(text, &value)) << text;
  return value;
}

ToolModel ReadToolModel(const std::string& path, int64_t columns) {
  ToolModel model;
  bool vectors = false;
  for (const std::string& line : LinesOf(path)) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (vectors) {
      model.coefficients.push_back(Number(words[0]));
      model.rows.emplace_back(static_cast<size_t>(columns));
      for (size_t w = 1; w < words.size(); ++w) {
        const std::vector<std::string> pair = absl::StrSplit(words[w], ':');
        model.rows.back()[std::stoul(pair[0]) - 1] = Number(pair[1]);
      }
    } else if (words[0] == "rho") {
      model.offset = -Number(words[1]);
    } else if (words[0] == "label") {
      model.sign = words[1] == "1" ? 1 : -1;
    }
    vectors = vectors || words[0] == "SV";
  }
  return model;
}

// The data are whole numbers, which the model file of libsvm's program stores exactly. Both solvers
// stop when no condition of optimality is violated by more than 1e-6. So their values may differ by
// a small multiple of 1e-6.
TEST(KernelSvmTest, TwoClassesOnRealDataAreTheModelOfLibsvmsProgram) {
  const LabeledRows rows = RawData("cancer.csv");
  const ScratchFolder folder;
  WriteSvmFile(rows, folder.File("rows"));
  MustRun(absl::StrCat(PHIMAP_SVM_TRAIN, " -t 2 -g 0.05 -c 2 -e 1e-6 ", folder.File("rows"), " ",
                       folder.File("model")));
  const ToolModel tool = ReadToolModel(folder.File("model"), rows.rows.cols());
  const std::unique_ptr<const Model> model =
      MustTrain("kernel_svm(C=2, tolerance=1e-06)", rows, 1, Kernel("rbf(gamma=0.05)"));
  const Matrix<double> scores = MustScore(*model, rows.rows);
  for (int64_t i = 0; i < rows.rows.rows(); ++i) {
    EXPECT_NEAR(scores(i, 1), tool.Value(rows.rows.row(i), rows.rows.cols(), 0.05), 2e-5) << i;
    EXPECT_EQ(scores(i, 0), -scores(i, 1));
  }
}

// 26 classes vote in 325 pairs. For each pair of classes, the values of the two programs agree to
// about 1e-5. With 2,000 rows there are about 50,000 values that could change a vote. So one row
// may get another class, but not three.
TEST(KernelSvmTest, ManyClassesOnRealDataVoteAsLibsvmsProgram) {
  const LabeledRows all = RawData("letter.csv");
  LabeledRows rows = Every(all, 0, 13);
  // libsvm breaks ties by the class that comes first in the data, our learner by the order of the
  // classes. Sorting the rows by class makes the two rules equal.
  std::vector<int64_t> order(rows.labels.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return rows.labels[a] < rows.labels[b]; });
  rows = Subset(rows, order);
  const LabeledRows test = Every(all, 1, 10);
  const ScratchFolder folder;
  WriteSvmFile(rows, folder.File("rows"));
  WriteSvmFile(test, folder.File("test"));
  MustRun(absl::StrCat(PHIMAP_SVM_TRAIN, " -t 2 -g 0.02 -c 10 -e 1e-5 ", folder.File("rows"), " ",
                       folder.File("model")));
  MustRun(absl::StrCat(PHIMAP_SVM_PREDICT, " ", folder.File("test"), " ", folder.File("model"), " ",
                       folder.File("classes")));
  const std::unique_ptr<const Model> model =
      MustTrain("kernel_svm(C=10, tolerance=1e-05)", rows, 1, Kernel("rbf(gamma=0.02)"));
  const std::vector<int32_t> classes = *model->Predict(test.rows.view(), NeverStop);
  const std::vector<std::string> expected = LinesOf(folder.File("classes"));
  ASSERT_EQ(expected.size(), classes.size());
  int64_t different = 0;
  for (size_t i = 0; i < classes.size(); ++i) different += classes[i] != std::stoi(expected[i]);
  EXPECT_LE(different, 2);
  EXPECT_LT(ErrorOn(*model, test), 0.2);
}

// libsvm does not have this kernel, so the test checks the conditions of optimality. y is the label
// of a row, f its score, and α = |coefficient|. The conditions are y·f >= 1 if α = 0, y·f = 1 if 0
// < α < C, and y·f <= 1 if α = C.
TEST(KernelSvmTest, ComposedKernelsMeetTheConditionsOfOptimality) {
  const LabeledRows rows = NoisyRows(200, 4, 2, 3);
  const KernelInput input = Kernel("rbf(gamma=0.3) + 0.1*poly(degree=2, coef0=1)");
  const std::unique_ptr<const Model> model =
      MustTrain("kernel_svm(C=0.5, tolerance=1e-06)", rows, 1, input);
  const Matrix<double> scores = MustScore(*model, rows.rows);
  int inside = 0;
  int at_bound = 0;
  for (int64_t i = 0; i < 200; ++i) {
    const double value = (rows.labels[i] == 1 ? 1 : -1) * scores(i, 1);
    if (std::abs(value - 1) < 1e-5) ++inside;
    if (value < 1 - 1e-5) ++at_bound;
  }
  const std::string summary = model->Summary();
  EXPECT_EQ(summary, absl::StrCat(inside + at_bound, " support vectors"));
  EXPECT_GT(inside, 0);
}

TEST(KernelSvmTest, AClassWithoutRowsLosesEveryPair) {
  LabeledRows rows = NoisyRows(60, 4, 2, 3);
  rows.classes = 3;
  const std::unique_ptr<const Model> model =
      MustTrain("kernel_svm()", rows, 1, Kernel("rbf(gamma=0.3)"));
  const Matrix<double> scores = MustScore(*model, rows.rows);
  for (int64_t i = 0; i < 60; ++i) EXPECT_EQ(scores(i, 2), 0);
}

TEST(KernelSvmTest, MoreRowsOfTwoClassesThanFitAreRefusedByNumber) {
  constexpr int64_t kMaxKernelSvmRows = 8192;
  LabeledRows rows{.rows = Matrix<double>(kMaxKernelSvmRows + 3, 1), .labels = {}, .classes = 3};
  rows.labels.assign(static_cast<size_t>(kMaxKernelSvmRows + 3), 0);
  rows.labels[0] = 1;
  rows.labels[1] = 2;
  const absl::Status status =
      MustMake("kernel_svm()", Kernel("rbf(gamma=1)"))->Train(rows.set(), 1, NeverStop).status();
  EXPECT_EQ(ReasonOf(status), "ROWS_TOO_MANY");
  EXPECT_EQ(DetailOf(status)->metadata.at("actual"), absl::StrCat(kMaxKernelSvmRows + 2));
}

}  // namespace
}  // namespace phimap::testing
