// Inputs that the artifacts of a release were built from and that they map: small files beside
// them.
#ifndef PHIMAP_TESTS_CORPUS_CORPUS_INPUTS_H_
#define PHIMAP_TESTS_CORPUS_CORPUS_INPUTS_H_

#include <string>
#include <vector>

#include "core/linalg/matrix.h"

namespace phimap::testing {

// All numbers are multiples of 1/8 and small: float32 holds them, and products of two rows are
// exact in float64 in any order.
struct CorpusInputs {
  // stream.csv: what builds of rows take; and the Gram matrix of precomputed() is that of its
  // products.
  Matrix<double> stream;
  // stream.txt: what builds of strings take, a string on each line; the first rows.rows() of them
  // are mapped.
  std::vector<std::string> texts;
  // rows.csv: what artifacts of rows map.
  Matrix<double> rows;
  // values.csv: what artifacts of remote kernels map: kernel values with up to columns − 1
  // landmarks, and K(x, x) as the last number.
  Matrix<double> values;
};

// The whole file. Ends the program if it cannot be read.
std::string ReadCorpusFile(const std::string& path);
std::vector<std::string> LinesOf(const std::string& text);
// Fields of a line that are separated by tabs.
std::vector<std::string> FieldsOf(const std::string& line);

CorpusInputs ReadCorpusInputs(const std::string& folder);

// Folders of all releases, in their order: tests/corpus/VERSION.
std::vector<std::string> CorpusFolders();

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORPUS_CORPUS_INPUTS_H_
