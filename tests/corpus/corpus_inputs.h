// The inputs of a release's corpus, in small files in the release's folder. The release built its
// artifacts from them, and the artifacts map them.
#ifndef PHIMAP_TESTS_CORPUS_CORPUS_INPUTS_H_
#define PHIMAP_TESTS_CORPUS_CORPUS_INPUTS_H_

#include <string>
#include <vector>

#include "core/linalg/matrix.h"

namespace phimap::testing {

// All numbers are small multiples of 1/8, so float32 represents them, and products of two rows are
// exact in float64 in any order of additions.
struct CorpusInputs {
  // stream.csv: the input of builds from rows. precomputed() gets the Gram matrix of these rows.
  Matrix<double> stream;
  // stream.txt: the input of builds from strings, one string per line. Artifacts of strings map the
  // first rows.rows() of these strings.
  std::vector<std::string> texts;
  // rows.csv: the rows that artifacts of rows map.
  Matrix<double> rows;
  // values.csv: the kernel values that artifacts of remote kernels map, for up to columns − 1
  // landmarks. The last number of a row is K(x, x).
  Matrix<double> values;
};

// Returns the contents of a file. Ends the program if the file cannot be read.
std::string ReadCorpusFile(const std::string& path);
std::vector<std::string> LinesOf(const std::string& text);
// Returns the fields of a line, which are separated by tabs.
std::vector<std::string> FieldsOf(const std::string& line);

CorpusInputs ReadCorpusInputs(const std::string& folder);

// Returns the folders of all releases in order: tests/corpus/VERSION.
std::vector<std::string> CorpusFolders();

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORPUS_CORPUS_INPUTS_H_
