// Reads the numbers of a CSV file of lab/data.
#ifndef PHIMAP_TESTS_CORE_MAPPING_CSV_ROWS_H_
#define PHIMAP_TESTS_CORE_MAPPING_CSV_ROWS_H_

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/linalg/matrix.h"
#include "core/status/check.h"
#include "tests/support/source_dir.h"

namespace phimap::testing {

// Returns the numbers of the file without the label, which is the last column.
inline Matrix<double> CsvRows(const std::string& name) {
  std::ifstream file(SourcePath("lab/data/" + std::string(name)));
  std::string line;
  std::getline(file, line);
  const int64_t columns = std::count(line.begin(), line.end(), ',');
  std::vector<double> numbers;
  while (std::getline(file, line)) {
    std::stringstream fields(line);
    std::string field;
    for (int64_t j = 0; j < columns && std::getline(fields, field, ','); ++j) {
      numbers.push_back(std::stod(field));
    }
  }
  PHIMAP_CHECK(columns > 0 && !numbers.empty());
  Matrix<double> rows(static_cast<int64_t>(numbers.size()) / columns, columns);
  std::copy(numbers.begin(), numbers.end(), rows.data());
  return rows;
}

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_MAPPING_CSV_ROWS_H_
