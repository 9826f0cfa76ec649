// Eigenvectors of a Gram matrix beside those of what stands for it.
#ifndef PHIMAP_LAB_EXPERIMENTS_AMS_EIGEN_H_
#define PHIMAP_LAB_EXPERIMENTS_AMS_EIGEN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/linalg/matrix.h"
#include "core/mapping/kernel_pca/randomized_gram.h"

namespace phimap::lab {

// All eigenpairs by falling value; unit vectors are rows.
struct GramEigen {
  std::vector<double> values;
  Matrix<double> vectors;
};

absl::StatusOr<GramEigen> GramEigenOf(const Matrix<float>& k);

// All entries.
absl::StatusOr<Matrix<float>> DenseGram(const RandomizedGram& gram);

// K and K̂, which must outlive this.
struct GramComparison {
  const GramEigen& exact;
  const GramEigen& found;
  // ⟨α̂_i, α_j⟩, and transposed.
  Matrix<double> overlap;
  Matrix<double> transposed;
  // ‖K̂ − K‖₂ from above.
  double norm = 0;

  GramComparison(const GramEigen& of_k, const GramEigen& of_hat, double error);
};

// The place of the first of falling values that is under `bound`.
int64_t FirstUnder(const std::vector<double>& falling, double bound);

// The spectral norm of what the first rows have in the columns from `first` on: the sine of the
// largest angle between a span and one whose complement these columns are.
absl::StatusOr<double> CornerNorm(const Matrix<double>& overlap, int64_t rows, int64_t first);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_AMS_EIGEN_H_
