#include "lab/letter/letter_data.h"

#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "client/files/csv_reader.h"
#include "client/files/input_file.h"
#include "core/status/status_macros.h"

namespace phimap::lab {
namespace {

constexpr int32_t kAllRows = 1 << 30;

}  // namespace

absl::StatusOr<LabeledRows> LoadLabeledRows(const std::string& path, const std::string& label) {
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<cli::InputFile> file, cli::InputFile::Open(path));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<cli::CsvReader> reader,
                          cli::CsvReader::Open(std::move(file), label));
  reader->KeepLabels();
  LabeledRows data;
  PHIMAP_ASSIGN_OR_RETURN(data.rows, reader->NextRows(kAllRows));
  std::map<std::string, int32_t> numbers;
  for (const std::string& name : reader->TakeLabels()) {
    const int32_t next = static_cast<int32_t>(numbers.size());
    data.classes.push_back(numbers.emplace(name, next).first->second);
  }
  data.class_count = static_cast<int32_t>(numbers.size());
  data.class_names.resize(numbers.size());
  for (const auto& [name, number] : numbers) data.class_names[number] = name;
  return data;
}

client::RowBlock Standardized(const client::RowBlock& rows) {
  std::vector<double> values(static_cast<size_t>(rows.rows) * rows.columns);
  for (int32_t j = 0; j < rows.columns; ++j) {
    double mean = 0;
    for (int32_t i = 0; i < rows.rows; ++i) mean += rows.At(i, j);
    mean /= rows.rows;
    double variance = 0;
    for (int32_t i = 0; i < rows.rows; ++i) variance += std::pow(rows.At(i, j) - mean, 2);
    variance /= rows.rows;
    const double scale = variance > 0 ? 1 / std::sqrt(variance) : 1;
    for (int32_t i = 0; i < rows.rows; ++i) {
      values[static_cast<size_t>(i) * rows.columns + j] = (rows.At(i, j) - mean) * scale;
    }
  }
  return client::MakeRowBlock(absl::Span<const double>(values), rows.columns);
}

Split SplitRows(int32_t rows, uint64_t seed) {
  std::vector<int32_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  // std::shuffle gives different results with different standard libraries. This engine and the
  // swaps below do not.
  std::mt19937_64 random(seed);
  for (int32_t i = rows - 1; i > 0; --i) {
    std::swap(order[i], order[random() % static_cast<uint64_t>(i + 1)]);
  }
  const int32_t train = static_cast<int32_t>(int64_t{rows} * 7 / 10);
  return {.train = {order.begin(), order.begin() + train},
          .test = {order.begin() + train, order.end()}};
}

}  // namespace phimap::lab
