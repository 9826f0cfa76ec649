// Parts that the experiments on Achlioptas, McSherry and Schölkopf share: real rows with a kernel,
// and ways to randomize their Gram matrix.
#ifndef PHIMAP_LAB_EXPERIMENTS_AMS_DATA_H_
#define PHIMAP_LAB_EXPERIMENTS_AMS_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"
#include "core/mapping/kernel_pca/randomized_gram.h"
#include "lab/experiment.h"

namespace phimap::lab {

// Rows of a data set, each column with mean 0 and variance 1, and rbf(gamma=width/columns). Width 1
// is gamma=scale.
struct KernelData {
  std::string name;
  Matrix<double> rows;
  KernelExpression kernel;
  KernelProgram program;

  int64_t columns() const { return rows.cols(); }
};

// Reads letter.csv and spam.csv, in this order.
absl::StatusOr<std::vector<KernelData>> ReadKernelData(const Options& options, double width = 1);

// Returns rows first … first + count − 1 of a random order of all rows, drawn with `seed`.
Matrix<double> DrawnRows(const KernelData& data, int64_t first, int64_t count, uint64_t seed);

// Returns "sparsified", "quantised" or "both".
std::string NameOf(const GramRandomization& randomization);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_AMS_DATA_H_
