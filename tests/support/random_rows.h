// Rows to test with, the same on every platform.
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

// Independent numbers of (-1, 1) with all the digits that T holds.
Matrix<double> UniformRows(const RandomRowsSpec& spec);
Matrix<float> UniformFloatRows(const RandomRowsSpec& spec);
// Independent N(0, 1).
Matrix<double> NormalRows(const RandomRowsSpec& spec);

template <typename T>
Matrix<T> UniformRowsOf(const RandomRowsSpec& spec) {
  if constexpr (sizeof(T) == 4) {
    return UniformFloatRows(spec);
  } else {
    return UniformRows(spec);
  }
}

// A contiguous matrix as rows of the wire.
RowsView WireRows(const Matrix<float>& rows);
RowsView WireRows(const Matrix<double>& rows);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_RANDOM_ROWS_H_
