// One two-class problem of a kernel support vector machine: the only file that calls libsvm is
// svm_pair.cc.
#ifndef PHIMAP_CORE_LEARN_SVM_PAIR_H_
#define PHIMAP_CORE_LEARN_SVM_PAIR_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/checkpoint.h"
#include "core/linalg/matrix.h"

namespace phimap {

// f(x) = Σ coefficients_i K(x_i, x) + offset; positive for the first class.
struct PairSeparator {
  // One coefficient per row: the first class's rows, then the second's. 0 for rows that are not
  // support vectors.
  std::vector<double> coefficients;
  double offset = 0;
};

// Shapes: rows n×p; the first `positive` rows belong to the first class. A class without rows loses
// everywhere. REQUIRES: n >= 1.
absl::StatusOr<PairSeparator> SolveSvmPair(const KernelProgram& kernel,
                                           ConstMatrixView<double> rows, int64_t positive, double C,
                                           double tolerance, Checkpoint checkpoint);

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_SVM_PAIR_H_
