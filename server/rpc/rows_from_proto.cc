#include "server/rpc/rows_from_proto.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/rpc/limits.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

absl::Status CheckCount(const char* field, int64_t count, int64_t limit) {
  if (count >= 1 && count <= limit) return absl::OkStatus();
  return MakeError(Code::kInvalidArgument, "OUT_OF_RANGE", field,
                   absl::StrCat("expected 1..", limit, ", got ", count),
                   {{"actual", absl::StrCat(count)}, {"limit", absl::StrCat(limit)}});
}

absl::Status WrongLength(const char* field, const char* unit, int64_t expected, int64_t actual,
                         const v1::DenseRows& dense) {
  return MakeError(Code::kInvalidArgument, "WRONG_LENGTH", field,
                   absl::StrCat("expected ", expected, " ", unit, " (", dense.rows(), " rows × ",
                                dense.columns(), " columns), got ", actual),
                   {{"expected", absl::StrCat(expected)}, {"actual", absl::StrCat(actual)}});
}

absl::Status NotOffered(const char* kind) {
  return MakeError(Code::kUnimplemented, "KIND_NOT_OFFERED", absl::StrCat("examples.", kind),
                   "this server maps dense rows only");
}

absl::StatusOr<RowsView> FromBytes(const char* field, const std::string& bytes, FloatType type,
                                   const v1::DenseRows& dense) {
  const RowsView rows{bytes.data(), type, dense.rows(), dense.columns()};
  // At most 65536 · 65536 · 8 = 2^35: no overflow.
  const int64_t expected = rows.rows * rows.RowBytes();
  if (bytes.size() != expected) return WrongLength(field, "bytes", expected, bytes.size(), dense);
  return rows;
}

absl::StatusOr<RowsView> FromNumbers(const v1::DenseRows& dense) {
  const auto& values = dense.numbers().values();
  const int64_t expected = int64_t{dense.rows()} * dense.columns();
  if (values.size() != expected) {
    return WrongLength("examples.dense.numbers", "numbers", expected, values.size(), dense);
  }
  return RowsView{reinterpret_cast<const char*>(values.data()), FloatType::kFloat64, dense.rows(),
                  dense.columns()};
}

absl::StatusOr<RowsView> FromDense(const v1::DenseRows& dense) {
  PHIMAP_RETURN_IF_ERROR(CheckCount("examples.dense.rows", dense.rows(), kMaxRowsPerMessage));
  PHIMAP_RETURN_IF_ERROR(
      CheckCount("examples.dense.columns", dense.columns(), kMaxColumnsPerMessage));
  switch (dense.values_case()) {
    case v1::DenseRows::kFloat32Le:
      return FromBytes("examples.dense.float32_le", dense.float32_le(), FloatType::kFloat32, dense);
    case v1::DenseRows::kFloat64Le:
      return FromBytes("examples.dense.float64_le", dense.float64_le(), FloatType::kFloat64, dense);
    case v1::DenseRows::kNumbers:
      return FromNumbers(dense);
    case v1::DenseRows::VALUES_NOT_SET:
      break;
  }
  return MakeError(Code::kInvalidArgument, "MISSING_FIELD", "examples.dense.values",
                   "expected one of float32_le, float64_le and numbers, got none");
}

}  // namespace

absl::StatusOr<RowsView> RowsFromProto(const v1::Examples& examples) {
  switch (examples.kind_case()) {
    case v1::Examples::kDense:
      return FromDense(examples.dense());
    case v1::Examples::kSparse:
      return NotOffered("sparse");
    case v1::Examples::kBytes:
      return NotOffered("bytes");
    case v1::Examples::kText:
      return NotOffered("text");
    case v1::Examples::KIND_NOT_SET:
      break;
  }
  return MakeError(Code::kInvalidArgument, "MISSING_FIELD", "examples",
                   "expected dense rows, got none");
}

}  // namespace phimap
