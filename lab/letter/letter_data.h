// Labeled rows for the demo, and how they are split.
#ifndef PHIMAP_LAB_LETTER_LETTER_DATA_H_
#define PHIMAP_LAB_LETTER_LETTER_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/row_source.h"

namespace phimap::lab {

struct LabeledRows {
  client::RowBlock rows;
  // One for each row: classes 0, 1, … in the order in which their names first appear.
  std::vector<int32_t> classes;
  int32_t class_count = 0;
};

// All rows of a CSV file whose label is the column `label`.
absl::StatusOr<LabeledRows> LoadLabeledRows(const std::string& path, const std::string& label);

// Each column shifted to mean 0 and scaled to population variance 1, a constant column only
// shifted: what the server does for `standardize`.
client::RowBlock Standardized(const client::RowBlock& rows);

struct Split {
  std::vector<int32_t> train;
  std::vector<int32_t> test;
};

// 70 % of the rows to train on and the other 30 %, drawn with `seed`; the same on every platform.
Split SplitRows(int32_t rows, uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_LETTER_LETTER_DATA_H_
