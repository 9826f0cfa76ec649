// Interface of a map from raw rows to explicit features.
#ifndef PHIMAP_CORE_LEARN_ROW_MAP_H_
#define PHIMAP_CORE_LEARN_ROW_MAP_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Immutable and thread-safe.
class RowMap {
 public:
  virtual ~RowMap() = default;

  virtual int64_t input_columns() const = 0;
  virtual int64_t output_columns() const = 0;
  // Computes the features of rows: row i of `out` becomes F(row i of `rows`). The features of a row
  // are bit-for-bit identical whether the row is mapped alone or with others. Shapes: rows
  // n×input_columns(), out n×output_columns().
  virtual absl::Status Map(ConstMatrixView<double> rows, MatrixView<double> out) const = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_ROW_MAP_H_
