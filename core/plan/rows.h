// Dense rows as they arrive over the wire: little-endian IEEE-754 numbers, row after row, at any
// alignment.
#ifndef PHIMAP_CORE_PLAN_ROWS_H_
#define PHIMAP_CORE_PLAN_ROWS_H_

#include <bit>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap {

static_assert(std::endian::native == std::endian::little,
              "wire and artifact numbers are little-endian; a big-endian port must swap them");

enum class FloatType : uint8_t { kFloat32 = 1, kFloat64 = 2 };

// Returns "float32" or "float64".
absl::string_view FloatTypeName(FloatType type);
inline int64_t FloatTypeBytes(FloatType type) { return type == FloatType::kFloat32 ? 4 : 8; }

// A view of rows × columns numbers; owns nothing. REQUIRES: `data` has rows * RowBytes() readable
// bytes.
struct RowsView {
  const char* data = nullptr;
  FloatType type = FloatType::kFloat64;
  int64_t rows = 0;
  int64_t columns = 0;

  int64_t RowBytes() const { return columns * FloatTypeBytes(type); }
  const char* Row(int64_t i) const { return data + i * RowBytes(); }
  // Rows first .. first + count - 1.
  RowsView Slice(int64_t first, int64_t count) const {
    return {data + first * RowBytes(), type, count, columns};
  }
  // Copies row i, widened to float64 (exact for float32). REQUIRES: `out` has room for `columns`
  // numbers.
  void CopyRow(int64_t i, double* out) const;
};

// Returns OK if every value is finite. Otherwise returns INVALID_ARGUMENT, reason VALUE_NOT_FINITE,
// with the value and the first offending row and column, counted from 0, as field
// rows[i].columns[j]. The caller prepends the path (WithFieldPrefix). Cost: one pass over the
// bytes.
absl::Status CheckFinite(const RowsView& rows);

// Returns ‖v‖² in float64, fast enough for rows that are served, with a relative error of about
// (count/8 + 8)·2⁻⁵³. The bits depend on v alone. Computes eight sums side by side, so that no
// addition waits for the one before. The eight sums are added at the end.
template <typename T>
double SquaredNorm(const T* v, int64_t count) {
  constexpr int64_t kSums = 8;
  double sums[kSums] = {};
  int64_t j = 0;
  for (; j + kSums <= count; j += kSums) {
    for (int64_t s = 0; s < kSums; ++s) {
      const double value = v[j + s];
      sums[s] += value * value;
    }
  }
  double total = 0;
  for (; j < count; ++j) total += static_cast<double>(v[j]) * static_cast<double>(v[j]);
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_ROWS_H_
