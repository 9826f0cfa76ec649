#include "tests/core/learn/labeled_data.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/support/random_rows.h"
#include "tests/support/source_dir.h"

namespace phimap::testing {
namespace {

void Standardize(Matrix<double>& rows) {
  const auto n = static_cast<double>(rows.rows());
  for (int64_t k = 0; k < rows.cols(); ++k) {
    double mean = 0;
    for (int64_t i = 0; i < rows.rows(); ++i) mean += rows(i, k) / n;
    double variance = 0;
    for (int64_t i = 0; i < rows.rows(); ++i) {
      variance += (rows(i, k) - mean) * (rows(i, k) - mean) / n;
    }
    const double scale = variance > 0 ? 1 / std::sqrt(variance) : 1;
    for (int64_t i = 0; i < rows.rows(); ++i) rows(i, k) = (rows(i, k) - mean) * scale;
  }
}

}  // namespace

LabeledRows RawData(const std::string& name) {
  std::ifstream file(SourcePath("lab/data/" + std::string(name)));
  EXPECT_TRUE(file.good()) << name;
  std::string line;
  std::getline(file, line);
  std::vector<std::vector<std::string>> cells;
  while (std::getline(file, line)) cells.push_back(absl::StrSplit(line, ','));
  const auto n = static_cast<int64_t>(cells.size());
  const auto columns = static_cast<int64_t>(cells[0].size()) - 1;
  LabeledRows data{.rows = Matrix<double>(n, columns), .labels = {}};
  std::map<std::string, int32_t> classes;
  for (const std::vector<std::string>& row : cells) classes[row.back()] = 0;
  for (auto& [class_name, index] : classes) index = data.classes++;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < columns; ++k) {
      EXPECT_TRUE(absl::SimpleAtod(cells[i][k], &data.rows(i, k))) << name << " row " << i;
    }
    data.labels.push_back(classes.at(cells[i].back()));
  }
  return data;
}

LabeledRows RealData(const std::string& name) {
  LabeledRows data = RawData(name);
  Standardize(data.rows);
  return data;
}

LabeledRows Subset(const LabeledRows& from, const std::vector<int64_t>& rows) {
  const auto n = static_cast<int64_t>(rows.size());
  LabeledRows subset{
      .rows = Matrix<double>(n, from.rows.cols()), .labels = {}, .classes = from.classes};
  for (int64_t i = 0; i < n; ++i) {
    std::copy_n(from.rows.row(rows[i]), from.rows.cols(), subset.rows.row(i));
    subset.labels.push_back(from.labels[rows[i]]);
  }
  return subset;
}

LabeledRows Every(const LabeledRows& from, int64_t first, int64_t step, int64_t most) {
  std::vector<int64_t> rows;
  for (int64_t i = first; i < from.rows.rows(); i += step) {
    if (static_cast<int64_t>(rows.size()) < most) rows.push_back(i);
  }
  return Subset(from, rows);
}

LabeledRows NoisyRows(int64_t n, int64_t columns, int32_t classes, uint64_t seed) {
  LabeledRows made{.rows = NormalRows({.rows = n, .cols = columns, .seed = seed}),
                   .labels = {},
                   .classes = classes};
  const Matrix<double> w = NormalRows({.rows = classes, .cols = columns, .seed = seed + 1});
  for (int64_t i = 0; i < n; ++i) {
    int32_t best = 0;
    double highest = -1e300;
    for (int32_t y = 0; y < classes; ++y) {
      double score = 0;
      for (int64_t k = 0; k < columns; ++k) score += w(y, k) * made.rows(i, k);
      if (score <= highest) continue;
      highest = score;
      best = y;
    }
    made.labels.push_back(i % 10 == 0 ? static_cast<int32_t>(i / 10 % classes) : best);
  }
  return made;
}

LabeledRows NoisyNumbers(int64_t n, int64_t columns, uint64_t seed) {
  LabeledRows made{.rows = NormalRows({.rows = n, .cols = columns, .seed = seed}), .labels = {}};
  const Matrix<double> w = NormalRows({.rows = 1, .cols = columns, .seed = seed + 1});
  const Matrix<double> noise = NormalRows({.rows = n, .cols = 1, .seed = seed + 2});
  double square = 0;
  for (int64_t k = 0; k < columns; ++k) square += w(0, k) * w(0, k);
  for (int64_t i = 0; i < n; ++i) {
    double target = 5 + noise(i, 0);
    for (int64_t k = 0; k < columns; ++k) {
      target += 2 / std::sqrt(square) * w(0, k) * made.rows(i, k);
    }
    made.targets.push_back(target);
  }
  return made;
}

LabeledRows FriedmanRows(int64_t n, int64_t columns, uint64_t seed) {
  LabeledRows made{.rows = UniformRows({.rows = n, .cols = columns, .seed = seed}), .labels = {}};
  const Matrix<double> noise = NormalRows({.rows = n, .cols = 1, .seed = seed + 1});
  for (int64_t i = 0; i < n; ++i) {
    double* x = made.rows.row(i);
    for (int64_t k = 0; k < columns; ++k) x[k] = (x[k] + 1) / 2;
    made.targets.push_back(10 * std::sin(M_PI * x[0] * x[1]) + 20 * (x[2] - 0.5) * (x[2] - 0.5) +
                           10 * x[3] + 5 * x[4] + noise(i, 0));
  }
  return made;
}

LabeledRows RowsWithMargin(int64_t n, int64_t columns, double margin, uint64_t seed) {
  LabeledRows out{
      .rows = NormalRows({.rows = n, .cols = columns, .seed = seed}), .labels = {}, .classes = 2};
  for (int64_t i = 0; i < n; ++i) {
    double square = 0;
    for (int64_t k = 1; k < columns; ++k) square += out.rows(i, k) * out.rows(i, k);
    for (int64_t k = 1; k < columns; ++k) {
      out.rows(i, k) *= std::sqrt((1 - margin * margin) / square);
    }
    out.rows(i, 0) = i % 2 == 0 ? margin : -margin;
    out.labels.push_back(i % 2 == 0 ? 1 : 0);
  }
  return out;
}

std::unique_ptr<const Learner> MustMake(const std::string& learner, const KernelInput& input) {
  const absl::StatusOr<LearnerSpec> spec = LearnerSpec::Parse(learner);
  EXPECT_TRUE(spec.ok()) << spec.status();
  if (!spec.ok()) return nullptr;
  absl::StatusOr<std::unique_ptr<const Learner>> made = MakeLearner(*spec, input);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : nullptr;
}

std::unique_ptr<const Model> MustTrain(const std::string& learner, const LabeledRows& examples,
                                       uint64_t seed, const KernelInput& input) {
  const std::unique_ptr<const Learner> made = MustMake(learner, input);
  if (made == nullptr) return nullptr;
  absl::StatusOr<std::unique_ptr<const Model>> model = made->Train(examples.set(), seed, NeverStop);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

Matrix<double> MustScore(const Model& model, const Matrix<double>& rows) {
  Matrix<double> scores(rows.rows(), model.score_count());
  const absl::Status status = model.Scores(rows.view(), scores.view(), NeverStop);
  EXPECT_TRUE(status.ok()) << status;
  return scores;
}

double ErrorOn(const Model& model, const LabeledRows& rows) {
  const std::vector<int32_t> classes = model.Predict(rows.rows.view(), NeverStop).value();
  int64_t wrong = 0;
  for (size_t i = 0; i < classes.size(); ++i) wrong += classes[i] != rows.labels[i];
  return static_cast<double>(wrong) / static_cast<double>(classes.size());
}

double RootMeanSquaredError(const Model& model, const LabeledRows& rows) {
  const Matrix<double> scores = MustScore(model, rows.rows);
  double sum = 0;
  for (int64_t i = 0; i < rows.rows.rows(); ++i) {
    sum += (scores(i, 0) - rows.targets[i]) * (scores(i, 0) - rows.targets[i]);
  }
  return std::sqrt(sum / static_cast<double>(rows.rows.rows()));
}

}  // namespace phimap::testing
