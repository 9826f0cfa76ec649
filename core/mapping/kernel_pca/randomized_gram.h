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
  // Each entry is kept with probability 1/sparsify. Kept entries are multiplied by `sparsify`,
  // which preserves the expected value. With sparsify = 1, all entries stay unchanged.
  double sparsify = 1;
  // Whether only the sign of a kept entry is stored. Let b = max K_ii. The entry is then replaced
  // by +sparsify·b or −sparsify·b, at random, with probabilities that preserve the expected value.
  bool quantise = false;

  bool any() const { return sparsify > 1 || quantise; }
};

// A random matrix K̂ whose expected value is the Gram matrix K = K(S, S) of m rows S. It is
// symmetric, its entries below the diagonal are independent, its diagonal is exact, and all its
// numbers are in float32.
//
// Let s = sparsify and b = max K_ii. Entries below the diagonal are drawn as follows:
//   sparsified   Row i keeps the columns g₁ − 1, g₁ + g₂ − 1, … The gaps g are geometric numbers
//                1 + ⌊ln u / ln(1 − 1/s)⌋, with a new u for each gap: uniform numbers
//                i·m, i·m + 1, … of StreamId::kGramGaps.
//   quantised    Entry (i, j) is +b if uniform number i·m + j of StreamId::kGramSigns is below
//                1/2 + K_ij/(2b), and −b otherwise. If also sparsified, it is ±s·b.
// Only the kernel values of kept entries are computed. Each row is drawn independently of the
// others, so the matrix and its products do not depend on the number of threads, not even in the
// last bit.
//
// Memory: 12 bytes per kept entry below the diagonal if sparsified; one bit per entry if only
// quantised. Immutable, thread-safe.
class RandomizedGram {
 public:
  // REQUIRES: randomization.any(); sparsify is finite; 1 to 65,536 rows, without a negative
  // K(x, x).
  // Errors: whatever `control` returns; KERNEL_ZERO if every K(x, x) is 0.
  // Cost: about 40 ns per kept entry, for its kernel value and the inner product in it, and 20 ns
  // per drawn sign.
  static absl::StatusOr<RandomizedGram> Draw(const KernelProgram& program,
                                             ConstMatrixView<double> rows,
                                             const GramRandomization& randomization, uint64_t seed,
                                             const TileControl& control);

  int64_t rows() const { return sparse_.rows(); }
  // Quantities on which the bounds on K̂ − K depend.
  const GramLaw& law() const { return law_; }

  // Multiplies b vectors, the rows of `v`, by K̂ in float32: out = v·K̂. Shapes: v and out b×m.
  // `out` must not alias `v`. Errors: those of `control`.
  absl::Status Multiply(ConstMatrixView<double> v, MatrixView<double> out,
                        const TileControl& control) const;

  // Subtracts K̂ from both triangles of the m×m matrix `k`. Errors: those of `control`.
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
  // The signs, used if the matrix is quantised but not sparsified. The sign of column j of a row is
  // bit j % 8 of the row's byte j/8; a bit of 1 means +b.
  int64_t row_bytes_ = 0;
  std::vector<uint8_t> bits_;
};

// Measured error of a randomized Gram matrix K̂, and quantities of K.
struct GramError {
  // Upper bound of ‖K̂ − K‖₂, for statements that need one. The probability that the bound is too
  // low is kNormDoubt. The bound is the estimate by Lanczos, which never exceeds the norm, plus the
  // possible error of that estimate (BoundNorm). It exceeds the norm by at most 2.1 %.
  double norm = 0;
  // The estimate of Lanczos itself, computed in float32.
  double norm_from_below = 0;
  // The largest sum of squares of a row of K without its diagonal entry: max_i Σ_{j≠i} K_ij².
  double largest_row = 0;
  // The mean of all entries of K.
  double kernel_mean = 0;
};

inline constexpr double kNormDoubt = 1e-3;
// Returns the number of Lanczos steps for m rows: 52 to 69.
int64_t GramErrorSteps(int64_t m);

// Measures the error of `gram` against the exact Gram matrix of `rows`. Cost: all kernel values of
// K, about 2m² flops per step of Lanczos, and 4m² bytes. The result does not depend on the number
// of threads, not even in the last bit. Errors: those of `control`.
absl::StatusOr<GramError> MeasureGramError(const KernelProgram& program,
                                           ConstMatrixView<double> rows, const RandomizedGram& gram,
                                           uint64_t seed, const TileControl& control);

// Returns K(S, S) in float32, both triangles.
absl::StatusOr<Matrix<float>> SingleGram(const KernelProgram& program, ConstMatrixView<double> rows,
                                         const TileControl& control);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_KERNEL_PCA_RANDOMIZED_GRAM_H_
