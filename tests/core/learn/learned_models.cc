// Writes the models that learners trained on real data, so that they can be compared with another
// implementation:
//
//   learned_models FOLDER
//
// For each case NAME, the program writes four files to the folder. NAME.rows and NAME.labels are
// the data. NAME.order contains the row that each step used. NAME.weights has a line for each
// class: its weights, followed by its intercept. Numbers have all their digits.
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/learn/row_order.h"
#include "core/random/stream_ids.h"
#include "tests/core/learn/labeled_data.h"

namespace phimap::testing {
namespace {

constexpr uint64_t kSeed = 5;
constexpr int64_t kEpochs = 4;

template <typename T>
void WriteList(const std::string& path, const std::vector<T>& numbers) {
  std::ofstream file(path);
  for (const T number : numbers) file << number << "\n";
}

void WriteMatrix(const std::string& path, const Matrix<double>& matrix) {
  std::ofstream file(path);
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    for (int64_t k = 0; k < matrix.cols(); ++k) file << absl::StrFormat("%.17g ", matrix(i, k));
    file << "\n";
  }
}

void WriteRows(const std::string& stem, const LabeledRows& rows) {
  WriteMatrix(stem + ".rows", rows.rows);
  WriteList(stem + ".labels", rows.labels);
}

void WritePerceptron(const std::string& stem, const LabeledRows& rows, bool average) {
  WriteRows(stem, rows);
  RowOrder order(rows.rows.rows(), kSeed);
  std::vector<int64_t> steps;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<int64_t>& next = order.Next();
    steps.insert(steps.end(), next.begin(), next.end());
  }
  WriteList(stem + ".order", steps);
  const std::unique_ptr<const Model> model = MustTrain(
      absl::StrFormat("perceptron(epochs=%d, average=%s)", kEpochs, average ? "true" : "false"),
      rows, kSeed);
  const LinearWeights& weights = *model->linear();
  Matrix<double> out(weights.weights.rows(), weights.weights.cols() + 1);
  for (int64_t y = 0; y < out.rows(); ++y) {
    for (int64_t k = 0; k + 1 < out.cols(); ++k) out(y, k) = weights.weights(y, k);
    out(y, out.cols() - 1) = weights.intercepts[y];
  }
  WriteMatrix(stem + ".weights", out);
}

// Trains kernel SGD with the linear kernel. Its weights w can be read off as the scores of unit
// vectors.
void WriteSgd(const std::string& stem, const LabeledRows& rows, const char* strategy) {
  WriteRows(stem, rows);
  const RandomStream stream(kSeed, StreamId::kSgdRows);
  const int64_t n = rows.rows.rows();
  std::vector<int64_t> steps;
  for (int64_t t = 0; t < kEpochs * n; ++t) {
    steps.push_back(static_cast<int64_t>(stream.UniformBelow(static_cast<uint64_t>(t), n)));
  }
  WriteList(stem + ".order", steps);
  const std::unique_ptr<const Model> model =
      MustTrain(absl::StrFormat("kernel_sgd(strategy=%s, rate=0.05, epochs=%d)", strategy, kEpochs),
                rows, kSeed, {.kernel = *KernelExpression::Parse("linear()"), .map = nullptr});
  Matrix<double> units(rows.rows.cols(), rows.rows.cols());
  for (int64_t k = 0; k < units.rows(); ++k) units(k, k) = 1;
  const Matrix<double> scores = MustScore(*model, units);
  Matrix<double> out(scores.cols(), scores.rows() + 1);
  for (int64_t y = 0; y < scores.cols(); ++y) {
    for (int64_t k = 0; k < scores.rows(); ++k) out(y, k) = scores(k, y);
  }
  WriteMatrix(stem + ".weights", out);
}

}  // namespace
}  // namespace phimap::testing

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: learned_models FOLDER\n";
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/";
  const phimap::testing::LabeledRows ionosphere = phimap::testing::RealData("ionosphere.csv");
  const phimap::testing::LabeledRows spam =
      phimap::testing::Every(phimap::testing::RealData("spam.csv"), 0, 3);
  const phimap::testing::LabeledRows letter =
      phimap::testing::Every(phimap::testing::RealData("letter.csv"), 0, 20);
  phimap::testing::WritePerceptron(folder + "perceptron_ionosphere", ionosphere, false);
  phimap::testing::WritePerceptron(folder + "perceptron_spam", spam, false);
  phimap::testing::WritePerceptron(folder + "averaged_ionosphere", ionosphere, true);
  phimap::testing::WriteSgd(folder + "sgd_ionosphere", ionosphere, "gram");
  phimap::testing::WriteSgd(folder + "sgd_spam", spam, "kernel");
  phimap::testing::WriteSgd(folder + "sgd_letter", letter, "gram");
  return 0;
}
