// A Gram matrix whose entries were randomized so that it takes less memory and less time to
// multiply with (Achlioptas, McSherry, Schölkopf 2001, section 3).
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
  // An entry is kept with probability 1/sparsify, and then is sparsify times as large; 1: all are.
  double sparsify = 1;
  // Each kept entry becomes ±sparsify·b at random, b = max K_ii, with the same mean.
  bool quantise = false;

  bool any() const { return sparsify > 1 || quantise; }
};

// K̂ with E K̂ = K(S, S) for rows S: symmetric, its entries below the diagonal independent, the
// diagonal exact, all numbers in float32. Below the diagonal
//   sparsified   row i keeps columns g₁ − 1, g₁ + g₂ − 1, …, the gaps g geometric:
//                1 + ⌊ln u / ln(1 − 1/s)⌋ of uniform numbers i·m, i·m + 1, … of StreamId::kGramGaps
//   quantised    K̂_ij = +b (or +s·b) if uniform number i·m + j of StreamId::kGramSigns is below
//                1/2 + K_ij/(2b), else −b (−s·b)
// so that only entries that are kept are evaluated, and a row depends on itself alone: the same
// bits for any number of threads, in products too. Sparsified, 12 bytes an entry kept below the
// diagonal are held; quantised alone, a bit each. Immutable, thread-safe.
class RandomizedGram {
 public:
  // REQUIRES: randomization.any(), finite; 1 to 65,536 rows, none of whose K(x, x) is negative.
  // Errors: whatever `control` returns; KERNEL_ZERO when every K(x, x) is 0.
  // Cost: the products and values of the entries kept, about 40 ns each, and 20 ns a sign drawn.
  static absl::StatusOr<RandomizedGram> Draw(const KernelProgram& program,
                                             ConstMatrixView<double> rows,
                                             const GramRandomization& randomization, uint64_t seed,
                                             const TileControl& control);

  int64_t rows() const { return sparse_.rows(); }
  // Quantities in the bounds on K̂ − K.
  const GramLaw& law() const { return law_; }

  // out = v·K̂ in float32. Shapes: v and out b×m; out aliases not v. Errors: those of `control`.
  absl::Status Multiply(ConstMatrixView<double> v, MatrixView<double> out,
                        const TileControl& control) const;

  // k −= K̂, both triangles. Shape: k m×m. Errors: those of `control`.
  absl::Status SubtractFrom(MatrixView<float> k, const TileControl& control) const;

 private:
  RandomizedGram(int64_t rows, GramLaw law) : law_(law), sparse_(rows) {}
  absl::Status DrawRows(const KernelProgram& program, ConstMatrixView<double> rows, uint64_t seed,
                        const TileControl& control);
  // Entries of row i that are held in bits.
  void SetBits(int64_t i, const std::vector<float>& values);
  // Rows first … first + out.rows() − 1 of a matrix that is held in bits.
  void Unpack(int64_t first, MatrixView<float> out) const;
  bool in_bits() const { return law_.sampling == GramSampling::kQuantise; }

  GramLaw law_;
  // The whole matrix if it is sparsified; the diagonal if it is only quantised.
  SparseSymmetric sparse_;
  // Quantised alone: bit j of row i, from the lowest of byte j/8 on, is 1 for +b.
  int64_t row_bytes_ = 0;
  std::vector<uint8_t> bits_;
};

// Effect of the randomization.
struct GramError {
  // ‖K̂ − K‖₂ is at most this except with probability kNormDoubt: the estimate of Lanczos, which is
  // a lower bound, plus its possible error (BoundNorm), together at most 2.1 % more than the norm.
  // A statement that takes an upper bound of the norm takes this.
  double norm = 0;
  // The estimate itself, in float32.
  double norm_from_below = 0;
  // max_i Σ_{j≠i} K_ij².
  double largest_row = 0;
  // The mean of all entries of K.
  double kernel_mean = 0;
};

inline constexpr double kNormDoubt = 1e-3;
// Steps of Lanczos for m rows: 52 to 69.
int64_t GramErrorSteps(int64_t m);

// Cost: all of K, and 4m² bytes, with about 2m² flops a step of Lanczos. The bits do not depend on
// the number of threads. Errors: whatever `control` returns.
absl::StatusOr<GramError> MeasureGramError(const KernelProgram& program,
                                           ConstMatrixView<double> rows, const RandomizedGram& gram,
                                           uint64_t seed, const TileControl& control);

// K(S, S) in float32, both triangles.
absl::StatusOr<Matrix<float>> SingleGram(const KernelProgram& program, ConstMatrixView<double> rows,
                                         const TileControl& control);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_KERNEL_PCA_RANDOMIZED_GRAM_H_
