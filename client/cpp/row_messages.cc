#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/calls.h"

namespace phimap::client {

namespace {

void ToDense(RowBlock block, v1::DenseRows& dense) {
  dense.set_rows(block.rows);
  dense.set_columns(block.columns);
  if (block.type == FloatType::kFloat32) {
    dense.set_float32_le(std::move(block.values_le));
  } else {
    dense.set_float64_le(std::move(block.values_le));
  }
}

void ToSparse(SparseBlock block, v1::SparseRows& sparse) {
  sparse.set_rows(block.rows());
  sparse.set_columns(block.columns);
  sparse.set_row_offsets_le(std::move(block.row_offsets_le));
  sparse.set_column_indices_le(std::move(block.column_indices_le));
  if (block.type == FloatType::kFloat32) {
    sparse.set_float32_le(std::move(block.values_le));
  } else {
    sparse.set_float64_le(std::move(block.values_le));
  }
}

}  // namespace

void ToExamples(ExampleBlock block, v1::Examples& examples) {
  if (block.dense() != nullptr)
    return ToDense(std::move(*block.dense()), *examples.mutable_dense());
  if (block.sparse() != nullptr) {
    return ToSparse(std::move(*block.sparse()), *examples.mutable_sparse());
  }
  for (std::string& value : block.strings()->values) {
    if (block.strings()->is_text) {
      examples.mutable_text()->add_values(std::move(value));
    } else {
      examples.mutable_bytes()->add_values(std::move(value));
    }
  }
}

absl::StatusOr<RowBlock> FromAnswer(v1::DenseRows&& rows, int32_t expected_rows) {
  RowBlock block{.rows = rows.rows(), .columns = rows.columns()};
  if (rows.has_float32_le()) {
    block.type = FloatType::kFloat32;
    block.values_le = std::move(*rows.mutable_float32_le());
  } else if (rows.has_float64_le()) {
    block.type = FloatType::kFloat64;
    block.values_le = std::move(*rows.mutable_float64_le());
  } else {
    return absl::InternalError(
        "the server's answer has features with neither float32_le nor float64_le");
  }
  const int64_t expected_bytes = int64_t{block.rows} * block.columns * ValueSizeBytes(block.type);
  if (block.rows != expected_rows || block.columns < 1 ||
      static_cast<int64_t>(block.values_le.size()) != expected_bytes) {
    return absl::InternalError(absl::StrCat("the server answered ", block.rows, " rows of ",
                                            block.columns, " features in ", block.values_le.size(),
                                            " bytes to a request of ", expected_rows, " rows"));
  }
  return block;
}

namespace {

template <typename T>
void PutLast(const RowBlock& from, const google::protobuf::RepeatedField<double>& column,
             std::string& to) {
  const size_t row_bytes = sizeof(T) * static_cast<size_t>(from.columns);
  for (int32_t i = 0; i < from.rows; ++i) {
    to.append(from.values_le, row_bytes * static_cast<size_t>(i), row_bytes);
    const T value = static_cast<T>(column[i]);
    to.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
}

}  // namespace

absl::StatusOr<RowBlock> WithLastColumn(RowBlock block,
                                        const google::protobuf::RepeatedField<double>& column) {
  if (column.size() != block.rows) {
    return absl::InternalError(absl::StrCat("the server answered ", column.size(),
                                            " residuals to a request of ", block.rows, " rows"));
  }
  RowBlock wider{.type = block.type, .rows = block.rows, .columns = block.columns + 1};
  wider.values_le.reserve(
      static_cast<size_t>(int64_t{wider.rows} * wider.columns * ValueSizeBytes(wider.type)));
  if (block.type == FloatType::kFloat32) {
    PutLast<float>(block, column, wider.values_le);
  } else {
    PutLast<double>(block, column, wider.values_le);
  }
  return wider;
}

}  // namespace phimap::client
