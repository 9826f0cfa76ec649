#include "core/plan/rows.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {
namespace {

template <typename T>
T ValueAt(const char* data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// Returns whether all of `count` values are finite: the exponent bits of a NaN or an infinity are
// all ones. Uses integer arithmetic on whole blocks, so that the common case costs a fraction of a
// nanosecond a value.
template <typename T, typename Bits>
bool AllFinite(const char* data, int64_t count) {
  constexpr Bits kExponent =
      sizeof(T) == 4 ? static_cast<Bits>(0x7f800000u) : static_cast<Bits>(0x7ff0000000000000u);
  int64_t bad = 0;
  for (int64_t i = 0; i < count; ++i) {
    bad += (ValueAt<Bits>(data, i) & kExponent) == kExponent ? 1 : 0;
  }
  return bad == 0;
}

template <typename T>
absl::Status NotFinite(const RowsView& rows) {
  for (int64_t i = 0; i < rows.rows; ++i) {
    for (int64_t j = 0; j < rows.columns; ++j) {
      const T value = ValueAt<T>(rows.data, i * rows.columns + j);
      if (std::isfinite(value)) continue;
      return MakeError(absl::StatusCode::kInvalidArgument, reason::kValueNotFinite,
                       absl::StrCat("rows[", i, "].columns[", j, "]"),
                       absl::StrCat("expected a finite number, got ", value),
                       {{"row", absl::StrCat(i)}, {"column", absl::StrCat(j)}});
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view FloatTypeName(FloatType type) {
  return type == FloatType::kFloat32 ? "float32" : "float64";
}

void RowsView::CopyRow(int64_t i, double* out) const {
  const char* row = data + i * RowBytes();
  if (type == FloatType::kFloat64) {
    std::memcpy(out, row, static_cast<size_t>(RowBytes()));
    return;
  }
  for (int64_t j = 0; j < columns; ++j) out[j] = static_cast<double>(ValueAt<float>(row, j));
}

absl::Status CheckFinite(const RowsView& rows) {
  const int64_t count = rows.rows * rows.columns;
  if (rows.type == FloatType::kFloat32) {
    if (AllFinite<float, uint32_t>(rows.data, count)) return absl::OkStatus();
    return NotFinite<float>(rows);
  }
  if (AllFinite<double, uint64_t>(rows.data, count)) return absl::OkStatus();
  return NotFinite<double>(rows);
}

}  // namespace phimap
