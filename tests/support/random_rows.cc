#include "tests/support/random_rows.h"

#include <utility>

#include "core/random/stream_ids.h"

namespace phimap::testing {

Matrix<double> UniformRows(const RandomRowsSpec& spec) {
  Matrix<double> rows = Matrix<double>::Uninit(spec.rows, spec.cols);
  RandomCursor random(RandomStream(spec.seed, StreamId::kStartVectors));
  for (int64_t i = 0; i < rows.size(); ++i) rows.data()[i] = 2 * random.UniformOpen01() - 1;
  return rows;
}

Matrix<float> UniformFloatRows(const RandomRowsSpec& spec) {
  const Matrix<double> rows = UniformRows(spec);
  return Converted<float, double>(rows.view());
}

Matrix<double> NormalRows(const RandomRowsSpec& spec) {
  Matrix<double> rows = Matrix<double>::Uninit(spec.rows, spec.cols);
  RandomCursor random(RandomStream(spec.seed, StreamId::kStartVectors));
  for (int64_t i = 0; i < rows.size(); ++i) rows.data()[i] = random.Normal();
  return rows;
}

RowsView WireRows(const Matrix<float>& rows) {
  return {reinterpret_cast<const char*>(rows.data()), FloatType::kFloat32, rows.rows(),
          rows.cols()};
}

RowsView WireRows(const Matrix<double>& rows) {
  return {reinterpret_cast<const char*>(rows.data()), FloatType::kFloat64, rows.rows(),
          rows.cols()};
}

}  // namespace phimap::testing
