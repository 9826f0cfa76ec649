// Rows by the bits of their numbers: finds rows that are repeated.
#ifndef PHIMAP_CORE_LINALG_ROW_SET_H_
#define PHIMAP_CORE_LINALG_ROW_SET_H_

#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "core/linalg/matrix.h"

namespace phimap {

// The matrices whose rows are added must outlive the set.
class RowSet {
 public:
  void Add(const Matrix<double>& rows, int64_t i) { rows_.insert(BytesOf(rows, i)); }
  bool Contains(const Matrix<double>& rows, int64_t i) const {
    return rows_.contains(BytesOf(rows, i));
  }

 private:
  static absl::string_view BytesOf(const Matrix<double>& rows, int64_t i) {
    return {reinterpret_cast<const char*>(rows.row(i)),
            static_cast<size_t>(rows.cols()) * sizeof(double)};
  }

  absl::flat_hash_set<absl::string_view> rows_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_ROW_SET_H_
