// Labeled rows for the demo, and their split into training and test rows.
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
  // The class of each row. Classes are numbered 0, 1, … in the order in which their names first
  // appear.
  std::vector<int32_t> classes;
  int32_t class_count = 0;
  // By number.
  std::vector<std::string> class_names;
};

// Reads all rows of a CSV file. The column `label` is the label.
absl::StatusOr<LabeledRows> LoadLabeledRows(const std::string& path, const std::string& label);

// Returns the rows with each column shifted to mean 0 and scaled to population variance 1, as the
// server does for `standardize`. A constant column is only shifted.
client::RowBlock Standardized(const client::RowBlock& rows);

struct Split {
  std::vector<int32_t> train;
  std::vector<int32_t> test;
};

// Splits the rows into 70 % to train on and 30 % to test on, drawn with `seed`. The split is the
// same on every platform.
Split SplitRows(int32_t rows, uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_LETTER_LETTER_DATA_H_
