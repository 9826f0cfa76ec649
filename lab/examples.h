// Labeled examples of an experiment: rows of real data, or rows that were drawn.
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
  // One a row, 0 … classes − 1.
  std::vector<int32_t> labels;
  int32_t classes = 2;

  // A view for learners, which does not outlive this.
  TrainingSet set() const { return {rows.view(), labels, classes}; }
};

// NAME.csv of `data_dir` as it is, by the product's own reader of CSV. Classes are numbered in the
// order in which they first appear.
absl::StatusOr<Examples> ReadExamples(const std::string& data_dir, const std::string& name);
// Each column with mean 0 and variance 1, one without variance with mean 0: what `standardize` of a
// build does.
void Standardize(Matrix<double>& rows);
// The rows of these numbers, in this order; a number may occur more than once.
Examples Subset(const Examples& from, const std::vector<int64_t>& rows);
// Rows first … first + count − 1.
Examples Slice(const Examples& from, int64_t first, int64_t count);
// A uniform permutation of 0 … n − 1.
std::vector<int64_t> ShuffledNumbers(int64_t n, uint64_t seed);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXAMPLES_H_
