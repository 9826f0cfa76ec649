// Solves one two-class problem of a kernel support vector machine. svm_pair.cc is the only file
// that calls libsvm.
#ifndef PHIMAP_CORE_LEARN_SVM_PAIR_H_
#define PHIMAP_CORE_LEARN_SVM_PAIR_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"
#include "core/linalg/work.h"

namespace phimap {

// The separator f(x) = Σ_i coefficients_i K(x_i, x) + offset of two classes, where the x_i are the
// training rows. f is positive for the first class.
struct PairSeparator {
  // One coefficient per row: the first class's rows, then the second's. 0 for rows that are not
  // support vectors.
  std::vector<double> coefficients;
  double offset = 0;
};

// Trains a separator of two classes. `rows` is an n×p matrix; its first `positive` rows belong to
// the first class. If one class has no rows, the separator always predicts the other class.
// REQUIRES: n >= 1.
absl::StatusOr<PairSeparator> SolveSvmPair(const KernelProgram& kernel,
                                           ConstMatrixView<double> rows, int64_t positive, double C,
                                           double tolerance, Checkpoint checkpoint);

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_SVM_PAIR_H_
