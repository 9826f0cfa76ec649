// A Gram matrix with randomized entries, which needs less memory and multiplies faster
// (Achlioptas, McSherry, Schölkopf 2001, section 3).
#ifndef PHIMAP_CORE_MAPPING_KERNEL_PCA_RANDOMIZED_GRAM_H_
#define PHIMAP_CORE_MAPPING_KERNEL_PCA_RANDOMIZED_GRAM_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"
#include "core/linalg/sparse_symmetric.h"
#include "core/linalg/tiles.h"
#include "core/theory/gram_bounds.h"

namespace phimap {

struct GramRandomization {
  // Each entry is kept with probability 1/sparsify and then multiplied by sparsify. 1 keeps all.
  double sparsify = 1;
  // Each kept entry becomes ±sparsify·b at random, with the same mean; b = max K_ii.
  bool quantise = false;

  bool any() const { return sparsify > 1 || quantise; }
};

// K̂ with E K̂ = K(S, S) for rows S: symmetric, its entries below the diagonal independent, the
// diagonal exact, all numbers in float32. Below the diagonal
//   sparsified   row i keeps columns g₁ − 1, g₁ + g₂ − 1, …, the gaps g geometric:
//                1 + ⌊ln u / ln(1 − 1/s)⌋ of uniform numbers i·m, i·m + 1, … of StreamId::kGramGaps
//   quantised    K̂_ij = +b (or +s·b) if uniform number i·m + j of StreamId::kGramSigns is below
//                1/2 + K_ij/(2b), else −b (−s·b)
// Only kept entries are evaluated. Each row is drawn independently of the others, so the bits do
// not depend on the number of threads, in products either. Memory: 12 bytes per kept entry below
// the diagonal if sparsified; one bit per entry if only quantised. Immutable, thread-safe.
class RandomizedGram {
 public:
  // REQUIRES: randomization.any(); sparsify is finite; 1 to 65,536 rows, without a negative
  // K(x, x).
  // Errors: whatever `control` returns; KERNEL_ZERO if every K(x, x) is 0.
  // Cost: about 40 ns per kept entry for its product and kernel value, and 20 ns per drawn sign.
  static absl::StatusOr<RandomizedGram> Draw(const KernelProgram& program,
                                             ConstMatrixView<double> rows,
                                             const GramRandomization& randomization, uint64_t seed,
                                             const TileControl& control);

  int64_t rows() const { return sparse_.rows(); }
  // Quantities in the bounds on K̂ − K.
  const GramLaw& law() const { return law_; }

  // Computes out = v·K̂ in float32. Shapes: v and out b×m. `out` must not alias `v`. Errors: those
  // of `control`.
  absl::Status Multiply(ConstMatrixView<double> v, MatrixView<double> out,
                        const TileControl& control) const;

  // Subtracts K̂ from both triangles of `k`, m×m. Errors: those of `control`.
  absl::Status SubtractFrom(MatrixView<float> k, const TileControl& control) const;

 private:
  RandomizedGram(int64_t rows, GramLaw law) : law_(law), sparse_(rows) {}
  absl::Status DrawRows(const KernelProgram& program, ConstMatrixView<double> rows, uint64_t seed,
                        const TileControl& control);
  // Stores the signs of row i's entries below the diagonal, and their mirror images, in `bits_`.
  void SetBits(int64_t i, const std::vector<float>& values);
  // Writes rows first … first + out.rows() − 1 of the matrix in `bits_` to `out`.
  void Unpack(int64_t first, MatrixView<float> out) const;
  bool in_bits() const { return law_.sampling == GramSampling::kQuantise; }

  GramLaw law_;
  // The whole matrix if sparsified; only the diagonal if the matrix is just quantised.
  SparseSymmetric sparse_;
  // Used if the matrix is just quantised: bit j of a row is bit j % 8 of byte j/8, and 1 means +b.
  int64_t row_bytes_ = 0;
  std::vector<uint8_t> bits_;
};

// Effect of the randomization.
struct GramError {
  // Upper bound of ‖K̂ − K‖₂, which fails with probability kNormDoubt: the estimate of Lanczos,
  // which is a lower bound, plus its possible error (BoundNorm). At most 2.1 % above the norm.
  // Statements that need an upper bound of the norm use this.
  double norm = 0;
  // The estimate of Lanczos itself, computed in float32.
  double norm_from_below = 0;
  // max_i Σ_{j≠i} K_ij².
  double largest_row = 0;
  // The mean of all entries of K.
  double kernel_mean = 0;
};

inline constexpr double kNormDoubt = 1e-3;
// Returns the number of Lanczos steps for m rows: 52 to 69.
int64_t GramErrorSteps(int64_t m);

// Measures the error of `gram` against the exact Gram matrix of `rows`. Cost: all kernel values of
// K, about 2m² flops per step of Lanczos, and 4m² bytes. The bits do not depend on the number of
// threads. Errors: whatever `control` returns.
absl::StatusOr<GramError> MeasureGramError(const KernelProgram& program,
                                           ConstMatrixView<double> rows, const RandomizedGram& gram,
                                           uint64_t seed, const TileControl& control);

// Returns K(S, S) in float32, both triangles.
absl::StatusOr<Matrix<float>> SingleGram(const KernelProgram& program, ConstMatrixView<double> rows,
                                         const TileControl& control);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_KERNEL_PCA_RANDOMIZED_GRAM_H_
