// Rows for tests. They are the same on every platform.
#ifndef PHIMAP_TESTS_SUPPORT_RANDOM_ROWS_H_
#define PHIMAP_TESTS_SUPPORT_RANDOM_ROWS_H_

#include <cstdint>

#include "core/linalg/matrix.h"
#include "core/plan/rows.h"

namespace phimap::testing {

struct RandomRowsSpec {
  int64_t rows = 0;
  int64_t cols = 0;
  uint64_t seed = 1;
};

// Return independent uniform numbers in (-1, 1), with all digits of their type.
Matrix<double> UniformRows(const RandomRowsSpec& spec);
Matrix<float> UniformFloatRows(const RandomRowsSpec& spec);
// Returns independent N(0, 1) numbers.
Matrix<double> NormalRows(const RandomRowsSpec& spec);

template <typename T>
Matrix<T> UniformRowsOf(const RandomRowsSpec& spec) {
  if constexpr (sizeof(T) == 4) {
    return UniformFloatRows(spec);
  } else {
    return UniformRows(spec);
  }
}

// Return a view of a contiguous matrix in the form in which requests carry rows.
RowsView WireRows(const Matrix<float>& rows);
RowsView WireRows(const Matrix<double>& rows);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_RANDOM_ROWS_H_
