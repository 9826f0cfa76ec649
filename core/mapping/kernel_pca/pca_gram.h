// The matrix whose eigenvectors kernel PCA finds: the Gram matrix of the landmarks or a randomized
// replacement, centred or not.
#ifndef PHIMAP_CORE_MAPPING_KERNEL_PCA_PCA_GRAM_H_
#define PHIMAP_CORE_MAPPING_KERNEL_PCA_PCA_GRAM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"
#include "core/mapping/kernel_pca/randomized_gram.h"

namespace phimap {

// Form in which the Gram matrix K(S, S) of the landmarks S is stored.
struct GramForm {
  GramRandomization randomization;
  // Whether an exact Gram matrix is stored in float32. A randomized Gram matrix always is.
  bool single = false;
};

// Immutable except for Centre; thread-safe. Results do not depend on the number of threads, not
// even in the last bit. Memory for m landmarks: 8m² bytes in float64, 4m² in float32, or that of
// RandomizedGram.
class PcaGram {
 public:
  // Computes the Gram matrix of `rows`. Errors: those of `control` and of RandomizedGram::Draw.
  static absl::StatusOr<PcaGram> Make(const KernelProgram& program, ConstMatrixView<double> rows,
                                      const GramForm& form, uint64_t seed,
                                      const TileControl& control);

  // Copies a given Gram matrix, of which it reads the lower triangle. Errors: those of `control`.
  static absl::StatusOr<PcaGram> Of(ConstMatrixView<double> gram, const TileControl& control);

  // Centres the Gram matrix K of m landmarks: replaces it by (I − 11ᵀ/m) K (I − 11ᵀ/m), where 1 is
  // the vector of ones. Call it at most once. Errors: those of `control`.
  absl::Status Centre(const TileControl& control);

  // Multiplies b vectors, the rows of `v`, by the Gram matrix K: out = v·K. Shapes: v and out b×m.
  // `out` must not alias `v`. Errors: those of `control`. Calls BLAS.
  absl::Status Multiply(ConstMatrixView<double> v, MatrixView<double> out,
                        const TileControl& control) const;

  // Returns a copy of the matrix. REQUIRES: it is in float64 and not randomized.
  Matrix<double> Exact() const;

  // The sum of the eigenvalues.
  double trace() const { return trace_; }
  // max K_ii, before centring.
  double largest() const { return largest_; }
  // mean_j K_ij of each row; empty if the matrix is not centred.
  const std::vector<double>& means() const { return means_; }
  // Whether products are rounded to float32.
  bool single() const { return exact_.empty(); }
  const std::optional<RandomizedGram>& randomized() const { return randomized_; }

 private:
  PcaGram() = default;
  absl::Status MultiplyAsIs(ConstMatrixView<double> v, MatrixView<double> out,
                            const TileControl& control) const;

  // Exactly one of these three holds the matrix.
  Matrix<double> exact_;
  Matrix<float> single_;
  std::optional<RandomizedGram> randomized_;
  int64_t rows_ = 0;
  double trace_ = 0;
  double largest_ = 0;
  std::vector<double> means_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_KERNEL_PCA_PCA_GRAM_H_
