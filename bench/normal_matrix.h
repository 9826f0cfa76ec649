// Random rows for measurements.
#ifndef PHIMAP_BENCH_NORMAL_MATRIX_H_
#define PHIMAP_BENCH_NORMAL_MATRIX_H_

#include <cstdint>
#include <random>

#include "core/linalg/matrix.h"

namespace phimap::bench {

// Returns independent normal numbers with mean 0 and standard deviation `scale`.
template <typename T>
Matrix<T> NormalMatrix(int64_t rows, int64_t cols, double scale, std::mt19937_64& random) {
  std::normal_distribution<T> normal(0, static_cast<T>(scale));
  Matrix<T> matrix = Matrix<T>::Uninit(rows, cols);
  for (int64_t i = 0; i < matrix.size(); ++i) matrix.data()[i] = normal(random);
  return matrix;
}
// Returns a fixed matrix of standard normal entries, the same in every call.
inline Matrix<double> NormalMatrix(int64_t rows, int64_t cols) {
  std::mt19937_64 random(1);
  return NormalMatrix<double>(rows, cols, 1, random);
}

}  // namespace phimap::bench

#endif  // PHIMAP_BENCH_NORMAL_MATRIX_H_
