#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/calls.h"
#include "core/status/words.h"

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
    return absl::InternalError(absl::StrCat("the server answered ", CountOf(block.rows, "row"),
                                            " of ", CountOf(block.columns, "feature"), " in ",
                                            block.values_le.size(), " bytes to a request of ",
                                            CountOf(expected_rows, "row")));
  }
  return block;
}

void ToRequest(const WantedOutputs& wanted, v1::PredictRequest& request) {
  request.set_scores(wanted.scores);
  request.set_probabilities(wanted.probabilities);
  request.set_confidence(wanted.confidence);
  request.set_deviations(wanted.deviations);
}

namespace {

std::vector<double> NumbersOf(const v1::DenseRows& rows) {
  const std::string& bytes = rows.float64_le();
  std::vector<double> numbers(bytes.size() / sizeof(double));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(double));
  return numbers;
}

template <typename T>
std::vector<T> ListOf(const google::protobuf::RepeatedField<T>& list) {
  return {list.begin(), list.end()};
}

}  // namespace

absl::StatusOr<Predictions> FromPrediction(v1::PredictResponse&& answer,
                                           const std::vector<std::string>& classes, int32_t rows) {
  Predictions out{.classes = classes,
                  .labels = ListOf(answer.labels()),
                  .values = ListOf(answer.values()),
                  .scores = NumbersOf(answer.scores()),
                  .probabilities = NumbersOf(answer.probabilities()),
                  .interval_lows = ListOf(answer.interval_lows()),
                  .interval_highs = ListOf(answer.interval_highs()),
                  .deviations = ListOf(answer.deviations())};
  for (const auto& set : answer.sets()) out.sets.push_back(ListOf(set.classes()));
  if (out.rows() != rows) {
    return absl::InternalError(absl::StrCat("the server answered ", out.rows(),
                                            " predictions to a request of ", rows, " rows"));
  }
  const auto count = static_cast<int32_t>(classes.size());
  const auto names_a_class = [count](int32_t index) { return index >= 0 && index < count; };
  bool in_range = std::all_of(out.labels.begin(), out.labels.end(), names_a_class);
  for (const std::vector<int32_t>& set : out.sets) {
    in_range &= std::all_of(set.begin(), set.end(), names_a_class);
  }
  if (!in_range) {
    return absl::InternalError(
        absl::StrCat("the server answered a class that is not among the ", count, " it named"));
  }
  return out;
}

absl::StatusOr<RowBlock> WithLastColumn(RowBlock block,
                                        const google::protobuf::RepeatedField<double>& column) {
  if (column.size() != block.rows) {
    return absl::InternalError(absl::StrCat("the server answered ",
                                            CountOf(column.size(), "residual"), " to a request of ",
                                            CountOf(block.rows, "row")));
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
