// Measures the spectrum of a kernel on a sample, and how much of it a mapping keeps.
#ifndef PHIMAP_CORE_CERTIFICATE_SPECTRUM_H_
#define PHIMAP_CORE_CERTIFICATE_SPECTRUM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/kernel_work.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"
#include "core/linalg/work.h"

namespace phimap {

// Maximum number of rows that a spectrum is measured on, and of eigenvalues that are kept.
inline constexpr int64_t kMaxSpectrumRows = 512;
inline constexpr int64_t kMaxEigenvalues = 64;

// Effective dimension d(λ) = Σ λ_i/(λ_i + λ). It is a smooth count of the eigenvalues λ_i that are
// larger than λ.
struct EffectiveDimension {
  double lambda = 0;
  // `kernel` is d(λ) for the eigenvalues of K/m. `mapping` is d(λ) for those of K̂/m, where K̂ is
  // the kernel projected onto the landmarks' span. With m and τ of Spectrum, d(K̂) ≤ d(K) ≤ d(K̂) +
  // mτ/(mλ + τ).
  double kernel = 0;
  double mapping = 0;
  bool operator==(const EffectiveDimension&) const = default;
};

struct Spectrum {
  // m, the number of rows, and whether they were held out. Earlier versions of phimap measured the
  // spectrum on rows of the pool, which has the landmarks, so that more of it lay in their span
  // than of the rows to come.
  int64_t rows = 0;
  bool held_out = false;
  // `trace` is tr K/m, the sum of all eigenvalues of K/m. `residual` is τ = tr(K − K̂)/m.
  double trace = 0;
  double residual = 0;
  // Largest eigenvalues of K/m in descending order; at most kMaxEigenvalues.
  std::vector<double> eigenvalues;
  // Effective dimensions for λ = 10⁻¹, 10⁻² … 10⁻⁵ times the trace.
  std::vector<EffectiveDimension> effective_dimensions;
  bool operator==(const Spectrum&) const = default;
};

// Measures the spectrum of `kernel` on the held-out rows `x`, and how much of it the span of
// `pivots` keeps. No pivot may be among the rows, or `residual` is less than that of rows to come.
//
// Shapes:   x has m rows and `pivots` r rows of p columns, both after the input stage. `factor` is
//           the Cholesky factor of the pivots' Gram matrix, a lower triangle of order r. REQUIRES:
//           m >= 1 and r >= 1.
// Accuracy: the error of an eigenvalue is at most about m·2⁻⁵³ of the largest one. If round-off
// makes an
//           eigenvalue or tr(K − K̂) negative, it is set to 0.
// Errors:   FAILED_PRECONDITION (SPECTRUM_UNDEFINED) if the trace is not a positive number.
// Threads:  at most two.
// Cost:     m²(p + r) + m r²/2 + (4/3)·2m³ flops, 8(2m² + 2rm) bytes.
absl::StatusOr<Spectrum> MeasureSpectrum(const KernelProgram& kernel, ConstMatrixView<double> x,
                                         ConstMatrixView<double> pivots,
                                         ConstMatrixView<double> factor,
                                         const TileControl& control = NeverStop);

// Does the same with given kernel values: `gram`, m×m, of the rows (only the lower triangle is
// read), and `block`, r×m, of the pivots with each row.
absl::StatusOr<Spectrum> MeasureGramSpectrum(Matrix<double> gram, Matrix<double> block,
                                             ConstMatrixView<double> factor,
                                             const TileControl& control = NeverStop);

// WorkOfSpectrum returns the work of MeasureSpectrum for m rows of p columns and rank r.
// BytesOfSpectrum returns its memory, including the rows before and after the input stage.
Work WorkOfSpectrum(int64_t rows, int64_t columns, int64_t rank, const ValueWork& value);
int64_t BytesOfSpectrum(int64_t rows, int64_t columns, int64_t rank);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_SPECTRUM_H_
