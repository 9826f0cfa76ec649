#include "tests/support/naive_plan.h"

#include <cmath>
#include <variant>
#include <vector>

#include "core/status/check.h"
#include "tests/support/naive_kernel.h"

namespace phimap::testing {
namespace {

template <typename T>
std::vector<long double> Input(const InputStage& input, const double* row) {
  std::vector<double> shifted(row, row + input.columns);
  for (int64_t k = 0; k < input.columns; ++k) {
    if (!input.shift.empty()) shifted[k] -= input.shift[k];
    if (!input.scale.empty()) shifted[k] *= input.scale[k];
  }
  std::vector<long double> out(input.output_columns());
  for (int64_t j = 0; j < input.output_columns(); ++j) {
    long double value = shifted[j % input.columns];
    if (!input.projection.empty()) {
      value = 0;
      for (int64_t k = 0; k < input.columns; ++k) {
        value += static_cast<long double>(shifted[k]) * input.projection(k, j);
      }
    }
    out[j] = static_cast<T>(static_cast<double>(value));
  }
  return out;
}

template <typename T>
struct FeatureValues {
  const std::vector<long double>& x;

  std::vector<long double> operator()(const ProductFeatures<T>& f) const {
    const int64_t count = f.rows.rows();
    std::vector<long double> z(count * f.program.results());
    for (int64_t j = 0; j < count; ++j) {
      const NaiveRow row(f.rows.row(j), f.rows.row(j) + f.rows.cols());
      const std::vector<long double> results =
          NaiveProgramOfRows(f.program, x, row, f.offsets.empty() ? 0 : f.offsets[j]);
      for (size_t i = 0; i < results.size(); ++i) z[i * count + j] = results[i];
    }
    return z;
  }
  std::vector<long double> operator()(const L1Features<T>& f) const {
    std::vector<long double> z(f.rows.rows());
    for (int64_t j = 0; j < f.rows.rows(); ++j) {
      long double distance = 0;
      for (int64_t k = 0; k < f.rows.cols(); ++k) distance += std::abs(x[k] - f.rows(j, k));
      z[j] = NaiveProgram(f.program, distance, 0)[0];
    }
    return z;
  }
  std::vector<long double> operator()(const RemoteFeatures&) const { PHIMAP_CHECK(false); }
  std::vector<long double> operator()(const StringFeatures&) const { PHIMAP_CHECK(false); }
  std::vector<long double> operator()(const ExpansionFeatures<T>& f) const {
    std::vector<long double> z(f.coefficients.begin(), f.coefficients.end());
    for (size_t i = 0; i < f.columns.size(); ++i) {
      if (f.columns[i] >= 0) z[i / f.degree] *= x[f.columns[i]];
    }
    return z;
  }
};

template <typename T>
struct Projected {
  const std::vector<long double>& z;

  std::vector<long double> operator()(const NoProjection&) const { return z; }
  std::vector<long double> operator()(const TriangularProjection<T>& p) const {
    std::vector<long double> y(p.order);
    const T* element = p.elements.data();
    for (int64_t k = 0; k < p.order; ++k) {
      for (int64_t j = k; j < p.order; ++j) y[j] += z[k] * *element++;
    }
    return y;
  }
  std::vector<long double> operator()(const DenseProjection<T>& p) const {
    std::vector<long double> y(p.matrix.cols());
    for (int64_t k = 0; k < p.matrix.rows(); ++k) {
      for (int64_t j = 0; j < p.matrix.cols(); ++j) y[j] += z[k] * p.matrix(k, j);
    }
    return y;
  }
  std::vector<long double> operator()(const SparseProjection<T>& p) const {
    std::vector<long double> y(p.columns);
    for (int64_t k = 0; k < p.rows; ++k) {
      for (int64_t i = p.row_offsets[k]; i < p.row_offsets[k + 1]; ++i) {
        y[p.column_indices[i]] += z[k] * p.values[i];
      }
    }
    return y;
  }
};

template <typename T>
Matrix<double> Interpret(const Plan& plan, const ServingStages<T>& stages,
                         const Matrix<double>& rows) {
  Matrix<double> out = Matrix<double>::Uninit(rows.rows(), stages.output_columns());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const std::vector<long double> x = Input<T>(plan.input, rows.row(i));
    std::vector<long double> z = std::visit(FeatureValues<T>{x}, stages.features);
    for (size_t j = 0; j < stages.centre.size(); ++j) z[j] -= stages.centre[j];
    const std::vector<long double> y = std::visit(Projected<T>{z}, stages.projection);
    for (size_t j = 0; j < y.size(); ++j) out(i, j) = static_cast<double>(y[j]);
  }
  return out;
}

}  // namespace

Matrix<double> NaiveTransform(const Plan& plan, const Matrix<double>& rows) {
  return std::visit([&](const auto& stages) { return Interpret(plan, stages, rows); }, plan.stages);
}

}  // namespace phimap::testing
