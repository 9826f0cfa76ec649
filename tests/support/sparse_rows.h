// Makes sparse rows for tests from their dense form.
#ifndef PHIMAP_TESTS_SUPPORT_SPARSE_ROWS_H_
#define PHIMAP_TESTS_SUPPORT_SPARSE_ROWS_H_

#include <cstdint>
#include <vector>

#include "core/linalg/matrix.h"
#include "core/plan/examples.h"

namespace phimap::testing {

// Owns the arrays that a SparseRowsView points to.
template <typename T>
struct SparseRowsOf {
  int64_t columns = 0;
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> indices;
  std::vector<T> values;

  SparseRowsView view() const {
    return {sizeof(T) == 4 ? FloatType::kFloat32 : FloatType::kFloat64,
            static_cast<int64_t>(offsets.size()) - 1,
            columns,
            reinterpret_cast<const char*>(offsets.data()),
            reinterpret_cast<const char*>(indices.data()),
            reinterpret_cast<const char*>(values.data())};
  }
};

// Returns sparse rows that store the numbers of `dense` at the positions where `named(i, j)` is
// true.
template <typename T, typename Named>
SparseRowsOf<T> SparseOf(const Matrix<T>& dense, const Named& named) {
  SparseRowsOf<T> sparse;
  sparse.columns = dense.cols();
  for (int64_t i = 0; i < dense.rows(); ++i) {
    for (int64_t j = 0; j < dense.cols(); ++j) {
      if (!named(i, j)) continue;
      sparse.indices.push_back(static_cast<int32_t>(j));
      sparse.values.push_back(dense(i, j));
    }
    sparse.offsets.push_back(static_cast<int64_t>(sparse.values.size()));
  }
  return sparse;
}

// Returns sparse rows that store the nonzero entries of `dense`.
template <typename T>
SparseRowsOf<T> SparseOf(const Matrix<T>& dense) {
  return SparseOf(dense, [&](int64_t i, int64_t j) { return dense(i, j) != 0; });
}

// Keeps only every `step`-th number of each row of `dense`, from a starting column that differs
// between rows. Every fifth row becomes all zeros.
template <typename T>
Matrix<T> Thinned(Matrix<T> dense, int64_t step) {
  for (int64_t i = 0; i < dense.rows(); ++i) {
    for (int64_t j = 0; j < dense.cols(); ++j) {
      if (i % 5 == 4 || (j * 5 + i * 3) % step != 0) dense(i, j) = 0;
    }
  }
  return dense;
}

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_SPARSE_ROWS_H_
