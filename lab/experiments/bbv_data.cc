#include "lab/experiments/bbv_data.h"

#include <algorithm>
#include <cmath>

#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_expression.h"
#include "core/learn/margin.h"
#include "core/random/stream_ids.h"
#include "core/status/status_macros.h"

namespace phimap::lab {
namespace {

double InnerProduct(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += a[k] * b[k];
  return sum;
}

}  // namespace

double BbvSurface::LeastMargin() const {
  return c / ((1 + 2 * bound * bound) * std::sqrt(2 + std::pow(b, -4)));
}

const std::array<BbvSurface, 8>& BbvSurfaces() {
  static const std::array<BbvSurface, 8> surfaces = {{
      {"ellipse, unif-unif", 1, 1, 0.2, 1.2, false, {0.044, 0.014, 0.031, 0.018, 0.017}},
      {"ellipse, gauss-unif", 1, 1, 0.2, 1.2, true, {0.049, 0.021, 0.013, 0.000, 0.001}},
      {"hyperbola, unif-unif", 1, -1, 0.2, 1.2, false, {0.031, 0.022, 0.023, 0.012, 0.010}},
      {"hyperbola, gauss-unif", 1, -1, 0.2, 1.2, true, {0.004, 0.000, 0.001, 0.000, 0.000}},
      {"ellipse, unif-unif", 0.5, 1, 0.1, 1.1, false, {0.140, 0.060, 0.065, 0.051, 0.045}},
      {"ellipse, gauss-unif", 0.5, 1, 0.1, 1.1, true, {0.061, 0.048, 0.049, 0.032, 0.036}},
      {"hyperbola, unif-unif", 0.5, -1, 0.1, 1.1, false, {0.029, 0.035, 0.018, 0.027, 0.018}},
      {"hyperbola, gauss-unif", 0.5, -1, 0.1, 1.1, true, {0.008, 0.000, 0.004, 0.000, 0.000}},
  }};
  return surfaces;
}

Examples DrawSurface(const BbvSurface& surface, double deviation, int64_t count, uint64_t seed) {
  RandomCursor points(RandomStream(seed, StreamId::kLabRows));
  RandomCursor coins(RandomStream(seed, StreamId::kLabLabels));
  Examples drawn{.rows = Matrix<double>(count, 2)};
  for (int64_t i = 0; i < count; ++i) {
    const bool is_positive = coins.UniformBelow(2) == 1;
    double* x = drawn.rows.row(i);
    double side = 0;
    do {
      for (int64_t k = 0; k < 2; ++k) {
        x[k] = surface.gauss && !is_positive ? deviation * points.Normal()
                                             : surface.bound * (2 * points.UniformOpen01() - 1);
      }
      side = surface.Side(x[0], x[1]);
    } while ((is_positive ? side : -side) < surface.c ||
             std::max(std::abs(x[0]), std::abs(x[1])) > surface.bound);
    drawn.labels.push_back(is_positive ? 1 : 0);
  }
  return drawn;
}

absl::StatusOr<std::vector<double>> BoundaryVector(const BuiltMap& map, const BbvSurface& surface) {
  Matrix<double> axes(5, 2);
  axes(0, 0) = axes(2, 1) = 1;
  axes(1, 0) = axes(3, 1) = -1;
  PHIMAP_ASSIGN_OR_RETURN(const Matrix<double> f, map.Map(axes.view()));
  const double second = surface.sign / (surface.b * surface.b);
  const double weights[] = {0.5, 0.5, second / 2, second / 2, -2 - second};
  std::vector<double> w(static_cast<size_t>(f.cols()));
  for (int64_t p = 0; p < 5; ++p) {
    for (int64_t j = 0; j < f.cols(); ++j) w[j] += weights[p] * f(p, j);
  }
  return w;
}

absl::StatusOr<std::vector<double>> SelfKernel(const std::string& kernel,
                                               ConstMatrixView<double> rows) {
  PHIMAP_ASSIGN_OR_RETURN(const KernelExpression expression, KernelExpression::Parse(kernel));
  return KernelDiagonal(KernelProgram::Compile(expression), rows, SquaredNorms(rows));
}

std::vector<double> RisingMargins(const std::vector<double>& w, const Examples& features,
                                  const std::vector<double>& self_kernel) {
  const auto count = static_cast<int64_t>(w.size());
  const Separators separator{.norms = {std::sqrt(InnerProduct(w.data(), w.data(), count))},
                             .intercepts = {}};
  std::vector<double> margins;
  for (int64_t i = 0; i < features.rows.rows(); ++i) {
    const double score = InnerProduct(w.data(), features.rows.row(i), count);
    margins.push_back(NormalisedMargin(separator, {&score, 1}, self_kernel[i], features.labels[i]));
  }
  std::sort(margins.begin(), margins.end());
  return margins;
}

const std::array<BbvDataSet, 5>& BbvDataSets() {
  static const char* const kRbf = "rbf(gamma=0.5)";
  static const std::array<BbvDataSet, 5> sets = {{
      {"Cancer",
       "cancer",
       -1,
       kBbvPolynomial,
       20,
       200,
       513,
       1,
       {0.1037, 0.0842, 0.0713, 0.0821, 0.0713}},
      {"Ionosphere",
       "ionosphere",
       -1,
       kBbvPolynomial,
       20,
       250,
       81,
       20,
       {0.1500, 0.1160, 0.1457, 0.1179, 0.1278}},
      {"IRIS 1VS23",
       "iris",
       0,
       "linear()",
       10,
       50,
       90,
       10,
       {0.0656, 0.0144, 0.0011, 0.0000, 0.0000}},
      {"IRIS 2VS13", "iris", 1, kRbf, 10, 50, 90, 10, {0.0767, 0.0611, 0.0678, 0.0444, 0.0456}},
      {"IRIS 3VS12", "iris", 2, kRbf, 10, 50, 90, 10, {0.0733, 0.0622, 0.0678, 0.0556, 0.0533}},
  }};
  return sets;
}

absl::StatusOr<Examples> ReadBbvDataSet(const std::string& data_dir, const BbvDataSet& data) {
  PHIMAP_ASSIGN_OR_RETURN(Examples examples, ReadExamples(data_dir, data.file));
  if (data.positive < 0) return examples;
  for (int32_t& label : examples.labels) label = label == data.positive ? 1 : 0;
  examples.classes = 2;
  return examples;
}

}  // namespace phimap::lab
