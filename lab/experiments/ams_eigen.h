// Compares the eigenvectors of a Gram matrix with those of its approximation.
#ifndef PHIMAP_LAB_EXPERIMENTS_AMS_EIGEN_H_
#define PHIMAP_LAB_EXPERIMENTS_AMS_EIGEN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"
#include "core/mapping/kernel_pca/randomized_gram.h"

namespace phimap::lab {

// All eigenpairs, in descending order of the values. The rows of `vectors` are unit vectors.
struct GramEigen {
  std::vector<double> values;
  Matrix<double> vectors;
};

absl::StatusOr<GramEigen> GramEigenOf(const Matrix<float>& k);

// Returns all entries of `gram`.
absl::StatusOr<Matrix<float>> DenseGram(const RandomizedGram& gram);

// Compares K with K̂. `exact` and `found`, their eigenpairs, must outlive this object.
struct GramComparison {
  const GramEigen& exact;
  const GramEigen& found;
  // The inner products ⟨α̂_i, α_j⟩, and their transpose.
  Matrix<double> overlap;
  Matrix<double> transposed;
  // An upper bound on ‖K̂ − K‖₂.
  double norm = 0;

  GramComparison(const GramEigen& of_k, const GramEigen& of_hat, double error);
};

// Returns the index of the first value under `bound`. REQUIRES: the values fall.
int64_t FirstUnder(const std::vector<double>& falling, double bound);

// Returns the spectral norm of a block of `overlap`: its first `rows` rows, in the columns from
// `first` on. If entry (i, j) is ⟨a_i, b_j⟩ for orthonormal bases a and b, this is the sine of the
// largest angle between the span of the first `rows` vectors a_i and the span of the first `first`
// vectors b_j.
absl::StatusOr<double> CornerNorm(const Matrix<double>& overlap, int64_t rows, int64_t first);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_AMS_EIGEN_H_
