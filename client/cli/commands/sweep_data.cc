#include "client/cli/commands/sweep_data.h"

#include <cstring>
#include <utility>
#include <vector>

#include "core/digest/sha256.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

constexpr client::BlockLimits kTimedRows = {.rows = 4096, .bytes = 8 << 20};

template <typename T>
T StoredNumber(const std::string& bytes, int64_t place) {
  T value;
  std::memcpy(&value, bytes.data() + place * sizeof(T), sizeof(T));
  return value;
}

// Returns row `row` as a dense row in float64.
std::vector<double> DenseRow(const client::SparseBlock& block, int32_t row) {
  std::vector<double> values(block.columns, 0.0);
  const auto end = StoredNumber<int64_t>(block.row_offsets_le, row + 1);
  for (auto i = StoredNumber<int64_t>(block.row_offsets_le, row); i < end; ++i) {
    values[StoredNumber<int32_t>(block.column_indices_le, i)] =
        block.type == client::FloatType::kFloat64 ? StoredNumber<double>(block.values_le, i)
                                                  : StoredNumber<float>(block.values_le, i);
  }
  return values;
}

std::vector<double> DenseRow(const client::RowBlock& block, int32_t row) {
  std::vector<double> values(block.columns);
  for (int32_t column = 0; column < block.columns; ++column) values[column] = block.At(row, column);
  return values;
}

std::string BytesOf(const client::ExampleBlock& block, int32_t row) {
  if (block.strings() != nullptr) return block.strings()->values[row] + std::string(1, '\0');
  const std::vector<double> values =
      block.dense() != nullptr ? DenseRow(*block.dense(), row) : DenseRow(*block.sparse(), row);
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
}

}  // namespace

absl::StatusOr<SweepData> ReadSweepData(client::LabeledRowSource& rows) {
  SweepData data;
  Sha256 hash;
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(client::ExampleBlock block, rows.Next(kTimedRows));
    const std::vector<std::string> labels = rows.TakeLabels();
    for (int32_t row = 0; row < block.rows(); ++row) {
      hash.Update(labels[row] + std::string(1, '\0') + BytesOf(block, row));
    }
    if (block.empty()) break;
    if (data.timed.empty()) data.timed = std::move(block);
  }
  if (data.timed.empty()) return absl::InvalidArgumentError("--input: there are no rows");
  data.digest = hash.Hex();
  return data;
}

}  // namespace phimap::cli
