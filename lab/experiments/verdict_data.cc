#include "lab/experiments/verdict_data.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/random/stream_ids.h"
#include "core/status/status_macros.h"

namespace phimap::lab {
namespace {

constexpr int64_t kDrawnRows = 6000;

// Labels each row by whether a polynomial of degree 2 with normal coefficients is over its median.
void LabelByPolynomial(const Matrix<double>& of, uint64_t seed, Examples& examples) {
  RandomCursor random(RandomStream(seed, StreamId::kLabLabels));
  const int64_t p = of.cols();
  std::vector<double> linear(static_cast<size_t>(p));
  for (double& a : linear) a = random.Normal();
  Matrix<double> square = Matrix<double>::Uninit(p, p);
  for (int64_t i = 0; i < square.size(); ++i) square.data()[i] = random.Normal();
  std::vector<double> values;
  for (int64_t i = 0; i < of.rows(); ++i) {
    double value = 0;
    for (int64_t j = 0; j < p; ++j) {
      value += linear[j] * of(i, j);
      for (int64_t k = 0; k < p; ++k) value += square(j, k) * of(i, j) * of(i, k);
    }
    values.push_back(value);
  }
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[sorted.size() / 2];
  for (const double value : values) examples.labels.push_back(value > median ? 1 : 0);
}

Examples SpikyRows() {
  RandomCursor random(RandomStream(1, StreamId::kLabRows));
  Examples examples{.rows = Matrix<double>::Uninit(kDrawnRows, 9), .labels = {}, .classes = 2};
  for (int64_t i = 0; i < examples.rows.size(); ++i) {
    double value = 0.01 * random.Normal();
    if (random.UniformOpen01() < 0.004) value += 30 * random.Normal();
    examples.rows.data()[i] = value;
  }
  Standardize(examples.rows);
  LabelByPolynomial(examples.rows, 1, examples);
  return examples;
}

Examples LongTailedRows() {
  RandomCursor random(RandomStream(2, StreamId::kLabRows));
  constexpr int64_t kColumns = 30;
  Examples examples{
      .rows = Matrix<double>::Uninit(kDrawnRows, kColumns), .labels = {}, .classes = 2};
  Matrix<double> directions = Matrix<double>::Uninit(kDrawnRows, kColumns);
  for (int64_t i = 0; i < kDrawnRows; ++i) {
    const double length = random.UniformOpen01() < 0.03 ? 30 : 1;
    for (int64_t j = 0; j < kColumns; ++j) {
      directions(i, j) = random.Normal();
      examples.rows(i, j) = length * directions(i, j);
    }
  }
  LabelByPolynomial(directions, 2, examples);
  return examples;
}

double ScaleOf(const Matrix<double>& rows) {
  double mean = 0;
  double square = 0;
  const auto n = static_cast<double>(rows.size());
  for (int64_t i = 0; i < rows.size(); ++i) {
    mean += rows.data()[i] / n;
    square += rows.data()[i] * rows.data()[i] / n;
  }
  return 1 / (static_cast<double>(rows.cols()) * (square - mean * mean));
}

class CellList {
 public:
  explicit CellList(const VerdictData& data)
      : data_(data),
        most_(data.streams_all ? data.examples.rows.rows() * 4 / 5 : int64_t{2000}),
        rbf_(absl::StrFormat("rbf(gamma=%.6g)", data.gamma)),
        poly_(absl::StrFormat("poly(degree=2, gamma=%.6g, coef0=1)", data.gamma)),
        laplacian_(absl::StrFormat("laplacian(gamma=%.6g)", data.gamma)),
        exponential_(absl::StrFormat("exp(%.6g*linear())", data.gamma)) {}

  std::vector<VerdictCell> Take() && {
    Landmarks();
    Projected();
    Sampled();
    return std::move(cells_);
  }

 private:
  // Adds a cell, unless the data set has too few rows for it.
  void Add(const std::string& kernel, int64_t landmarks, std::string mapping) {
    if (landmarks > most_) return;
    cells_.push_back({data_.name, kernel, std::move(mapping)});
  }

  void Landmarks() {
    for (const std::string& kernel : {rbf_, poly_, laplacian_}) {
      for (const int64_t d : {20, 50, 100, 200, 500, 1000}) {
        Add(kernel, d, absl::StrFormat("f2(landmarks=%d)", d));
      }
    }
    Add(rbf_, 2000, "f2(landmarks=2000)");
    for (const char* policy : {"kmeans", "d2", "rpcholesky"}) {
      for (const int64_t d : {50, 300}) {
        Add(rbf_, d, absl::StrFormat("f2(landmarks=%d, policy=%s)", d, policy));
      }
    }
  }

  void Projected() {
    for (const std::string& kernel : {rbf_, poly_}) {
      Add(kernel, 200, "f3(landmarks=200, dimensions=50)");
      Add(kernel, 500, "f3(landmarks=500, dimensions=200)");
      Add(kernel, 1000, "f3(landmarks=1000, dimensions=500)");
      for (const int64_t d : {20, 100, 250}) {
        Add(kernel, 250, absl::StrFormat("kpca(landmarks=250, dimensions=%d)", d));
        Add(kernel, 250, absl::StrFormat("kpca(landmarks=250, dimensions=%d, centred=false)", d));
      }
    }
    Add("linear()", 0, "random_projection(dimensions=10)");
    Add("linear()", 0, "random_projection(dimensions=100)");
  }

  void Sampled() {
    for (const std::string& kernel : {rbf_, laplacian_}) {
      for (const int64_t d : {20, 100, 500, 2000}) {
        Add(kernel, 0, absl::StrFormat("fourier(dimensions=%d)", d));
      }
    }
    Add(rbf_, 0, "fourier(dimensions=500, orthogonal=true)");
    Add(exponential_, 0, "positive(dimensions=200)");
    Add(exponential_, 0, "positive(dimensions=2000)");
    if (data_.examples.rows.cols() <= 57) Add(poly_, 0, "polynomial(dimensions=2000)");
  }

  const VerdictData& data_;
  const int64_t most_;
  const std::string rbf_;
  const std::string poly_;
  const std::string laplacian_;
  const std::string exponential_;
  std::vector<VerdictCell> cells_;
};

}  // namespace

absl::StatusOr<std::vector<VerdictData>> ReadVerdictData(const std::string& data_dir) {
  std::vector<VerdictData> data;
  const auto add = [&](std::string name, Examples examples, VerdictData shape) {
    shape.name = std::move(name);
    shape.examples = std::move(examples);
    shape.gamma = ScaleOf(shape.examples.rows);
    data.push_back(std::move(shape));
  };
  const auto read = [&](const std::string& name, VerdictData shape) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(Examples examples, ReadExamples(data_dir, name));
    Standardize(examples.rows);
    add(name, std::move(examples), std::move(shape));
    return absl::OkStatus();
  };
  PHIMAP_RETURN_IF_ERROR(
      read("letter", {.stream = 4000, .train = 1500, .validate = 600, .test = 2500}));
  PHIMAP_RETURN_IF_ERROR(
      read("spam", {.stream = 2600, .train = 1300, .validate = 500, .test = 1400}));
  PHIMAP_RETURN_IF_ERROR(
      read("ionosphere",
           {.stream = 351, .train = 150, .validate = 76, .test = 125, .streams_all = true}));
  PHIMAP_RETURN_IF_ERROR(read(
      "cancer", {.stream = 683, .train = 250, .validate = 133, .test = 300, .streams_all = true}));
  add("spiky", SpikyRows(), {.stream = 3000, .train = 1300, .validate = 600, .test = 2000});
  add("long_tailed", LongTailedRows(),
      {.stream = 3000, .train = 1300, .validate = 600, .test = 2000});
  return data;
}

std::vector<VerdictCell> VerdictCells(const std::vector<VerdictData>& data) {
  std::vector<VerdictCell> cells;
  for (const VerdictData& one : data) {
    for (VerdictCell& cell : CellList(one).Take()) cells.push_back(std::move(cell));
  }
  return cells;
}

}  // namespace phimap::lab
