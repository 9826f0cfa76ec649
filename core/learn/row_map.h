// Explicit features of raw rows, wherever they come from.
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
  // out_i = F(rows_i). A row gives the same bits alone as among others. Shapes: rows
  // n×input_columns(), out n×output_columns().
  virtual absl::Status Map(ConstMatrixView<double> rows, MatrixView<double> out) const = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_ROW_MAP_H_
