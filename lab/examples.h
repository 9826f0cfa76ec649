// Labeled examples of an experiment: rows of a data set, or rows drawn at random.
#ifndef PHIMAP_LAB_EXAMPLES_H_
#define PHIMAP_LAB_EXAMPLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/learn/learner.h"
#include "core/linalg/matrix.h"

namespace phimap::lab {

struct Examples {
  Matrix<double> rows;
  // One label per row, from 0 to classes − 1.
  std::vector<int32_t> labels;
  int32_t classes = 2;

  // Returns a view for learners. This object must outlive the view.
  TrainingSet set() const { return {rows.view(), labels, classes}; }
};

// Reads NAME.csv in `data_dir` with phimap's CSV reader. The values stay as they are. Classes are
// numbered in the order in which they first appear.
absl::StatusOr<Examples> ReadExamples(const std::string& data_dir, const std::string& name);
// Shifts and scales each column to mean 0 and variance 1, as `standardize` of a build does. A
// column without variance is only shifted.
void Standardize(Matrix<double>& rows);
// Returns the rows with these numbers, in this order; a number may occur more than once.
Examples Subset(const Examples& from, const std::vector<int64_t>& rows);
// Returns rows first … first + count − 1.
Examples Slice(const Examples& from, int64_t first, int64_t count);
// Returns a uniformly random permutation of 0 … n − 1.
std::vector<int64_t> ShuffledNumbers(int64_t n, uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXAMPLES_H_
