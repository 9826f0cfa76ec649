// The data sets on which verdicts are judged, and the mappings that are built of them.
#ifndef PHIMAP_LAB_EXPERIMENTS_VERDICT_DATA_H_
#define PHIMAP_LAB_EXPERIMENTS_VERDICT_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lab/examples.h"

namespace phimap::lab {

// A data set and how a split divides it. The stream is unlabeled; training rows are part of it.
struct VerdictData {
  std::string name;
  Examples examples;
  int64_t stream = 0;
  int64_t train = 0;
  int64_t validate = 0;
  int64_t test = 0;
  // Whether all rows are streamed, because there are too few to keep some away from the stream.
  bool streams_all = false;
  // 1/(columns·variance of all numbers).
  double gamma = 0;
};

// Returns letter, spam, ionosphere and cancer, standardised; 6,000 spiky rows of 9 columns, each
// number .01·N(0, 1) and with probability .004 also 30·N(0, 1), standardised; and 6,000 normal rows
// of 30 columns, of which 3 % are 30 times as long. The last two are drawn, and labeled by whether
// a random polynomial of degree 2 is over its median: of a spiky row itself, and of a long-tailed
// row's direction.
absl::StatusOr<std::vector<VerdictData>> ReadVerdictData(const std::string& data_dir);

// A mapping of a kernel, to be built of a data set.
struct VerdictCell {
  std::string data;
  std::string kernel;
  std::string mapping;

  std::string Key() const { return data + "|" + kernel + "|" + mapping; }
};

// Returns all cells: every mapping that approximates a kernel, with the kernels rbf, poly of degree
// 2 and laplacian (linear and exp(linear()) for mappings that take no other), of 10 to 2,000
// features.
std::vector<VerdictCell> VerdictCells(const std::vector<VerdictData>& data);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_VERDICT_DATA_H_
