#include "lab/examples.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/random/stream_ids.h"
#include "core/status/status_macros.h"
#include "lab/letter/letter_data.h"

namespace phimap::lab {

absl::StatusOr<Examples> ReadExamples(const std::string& data_dir, const std::string& name) {
  PHIMAP_ASSIGN_OR_RETURN(LabeledRows read,
                          LoadLabeledRows(absl::StrCat(data_dir, "/", name, ".csv"), "label"));
  Examples examples{.rows = Matrix<double>::Uninit(read.rows.rows, read.rows.columns),
                    .labels = std::move(read.classes),
                    .classes = read.class_count};
  for (int32_t i = 0; i < read.rows.rows; ++i) {
    for (int32_t j = 0; j < read.rows.columns; ++j) examples.rows(i, j) = read.rows.At(i, j);
  }
  return examples;
}

void Standardize(Matrix<double>& rows) {
  const auto n = static_cast<double>(rows.rows());
  for (int64_t k = 0; k < rows.cols(); ++k) {
    double mean = 0;
    for (int64_t i = 0; i < rows.rows(); ++i) mean += rows(i, k) / n;
    double variance = 0;
    for (int64_t i = 0; i < rows.rows(); ++i) variance += std::pow(rows(i, k) - mean, 2) / n;
    const double scale = variance > 0 ? 1 / std::sqrt(variance) : 1;
    for (int64_t i = 0; i < rows.rows(); ++i) rows(i, k) = (rows(i, k) - mean) * scale;
  }
}

Examples Subset(const Examples& from, const std::vector<int64_t>& rows) {
  const auto n = static_cast<int64_t>(rows.size());
  Examples subset{.rows = Matrix<double>::Uninit(n, from.rows.cols()), .classes = from.classes};
  for (int64_t i = 0; i < n; ++i) {
    std::copy_n(from.rows.row(rows[i]), from.rows.cols(), subset.rows.row(i));
    subset.labels.push_back(from.labels[rows[i]]);
  }
  return subset;
}

Examples Slice(const Examples& from, int64_t first, int64_t count) {
  std::vector<int64_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return Subset(from, rows);
}

std::vector<int64_t> ShuffledNumbers(int64_t n, uint64_t seed) {
  return FirstOfPermutation(n, n, RandomStream(seed, StreamId::kLabOrder));
}

}  // namespace phimap::lab
