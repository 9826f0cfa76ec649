#include "core/linalg/blas.h"

#include <cblas.h>
#include <lapacke.h>

#include <new>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"

// Functions of OpenBLAS that the standard headers do not declare.
extern "C" {
void openblas_set_num_threads(int threads);
char* openblas_get_corename(void);
}

namespace phimap {
namespace {

// Even for empty matrices, BLAS requires a leading dimension of at least 1 and pointers that are
// not null.
int Leading(int64_t stride) { return static_cast<int>(stride > 0 ? stride : 1); }
bool Empty(int64_t rows, int64_t cols) { return rows == 0 || cols == 0; }

// Largest order of a triangle that is solved by one call of BLAS. Larger triangles are halved.
constexpr int64_t kSolvedAtOnce = 64;

// Returns about half of m, rounded up to whole blocks. REQUIRES: m > kSolvedAtOnce.
int64_t HalfOf(int64_t m) { return (m / 2 + kSolvedAtOnce - 1) / kSolvedAtOnce * kSolvedAtOnce; }

void Gemm(CBLAS_TRANSPOSE transpose_b, double alpha, ConstMatrixView<double> a,
          ConstMatrixView<double> b, double beta, MatrixView<double> out) {
  if (Empty(out.rows(), out.cols())) return;
  cblas_dgemm(CblasRowMajor, CblasNoTrans, transpose_b, static_cast<int>(out.rows()),
              static_cast<int>(out.cols()), static_cast<int>(a.cols()), alpha, a.data(),
              Leading(a.stride()), b.data(), Leading(b.stride()), beta, out.data(),
              Leading(out.stride()));
}

void Triangle(bool solve, CBLAS_TRANSPOSE transpose, ConstMatrixView<double> l,
              MatrixView<double> out) {
  PHIMAP_CHECK(l.rows() == l.cols() && l.rows() == out.rows());
  if (Empty(out.rows(), out.cols())) return;
  const auto apply = solve ? cblas_dtrsm : cblas_dtrmm;
  apply(CblasRowMajor, CblasLeft, CblasLower, transpose, CblasNonUnit, static_cast<int>(out.rows()),
        static_cast<int>(out.cols()), 1.0, l.data(), Leading(l.stride()), out.data(),
        Leading(out.stride()));
}

}  // namespace

void UseOneBlasThread() { openblas_set_num_threads(1); }

std::string BlasCoreName() { return openblas_get_corename(); }

void Multiply(double alpha, ConstMatrixView<double> a, ConstMatrixView<double> b, double beta,
              MatrixView<double> out) {
  PHIMAP_CHECK(a.cols() == b.rows() && out.rows() == a.rows() && out.cols() == b.cols());
  Gemm(CblasNoTrans, alpha, a, b, beta, out);
}

void MultiplyTransposed(double alpha, ConstMatrixView<double> a, ConstMatrixView<double> b,
                        double beta, MatrixView<double> out) {
  PHIMAP_CHECK(a.cols() == b.cols() && out.rows() == a.rows() && out.cols() == b.rows());
  Gemm(CblasTrans, alpha, a, b, beta, out);
}

void MultiplyFirstTransposed(double alpha, ConstMatrixView<double> a, ConstMatrixView<double> b,
                             double beta, MatrixView<double> out) {
  PHIMAP_CHECK(a.rows() == b.rows() && out.rows() == a.cols() && out.cols() == b.cols());
  if (Empty(out.rows(), out.cols())) return;
  cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, static_cast<int>(out.rows()),
              static_cast<int>(out.cols()), static_cast<int>(a.rows()), alpha, a.data(),
              Leading(a.stride()), b.data(), Leading(b.stride()), beta, out.data(),
              Leading(out.stride()));
}

void MultiplyTransposedSingle(ConstMatrixView<float> a, ConstMatrixView<float> b,
                              MatrixView<float> out) {
  PHIMAP_CHECK(a.cols() == b.cols() && out.rows() == a.rows() && out.cols() == b.rows());
  if (Empty(out.rows(), out.cols())) return;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(out.rows()),
              static_cast<int>(out.cols()), static_cast<int>(a.cols()), 1.0f, a.data(),
              Leading(a.stride()), b.data(), Leading(b.stride()), 0.0f, out.data(),
              Leading(out.stride()));
}

void MultiplyVectorSingle(ConstMatrixView<float> a, const float* x, float* out) {
  if (Empty(a.rows(), a.cols())) return;
  cblas_sgemv(CblasRowMajor, CblasNoTrans, static_cast<int>(a.rows()), static_cast<int>(a.cols()),
              1.0f, a.data(), Leading(a.stride()), x, 1, 0.0f, out, 1);
}

void MultiplyVector(double alpha, ConstMatrixView<double> a, const double* x, double beta,
                    double* out, int64_t out_stride) {
  if (Empty(a.rows(), a.cols())) return;
  cblas_dgemv(CblasRowMajor, CblasNoTrans, static_cast<int>(a.rows()), static_cast<int>(a.cols()),
              alpha, a.data(), Leading(a.stride()), x, 1, beta, out, Leading(out_stride));
}

void SymmetricRankUpdate(double alpha, ConstMatrixView<double> a, double beta,
                         MatrixView<double> out) {
  PHIMAP_CHECK(out.rows() == out.cols() && out.rows() == a.rows());
  if (Empty(a.rows(), a.rows())) return;
  cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, static_cast<int>(a.rows()),
              static_cast<int>(a.cols()), alpha, a.data(), Leading(a.stride()), beta, out.data(),
              Leading(out.stride()));
}

void SymmetricRankUpdateTransposed(double alpha, ConstMatrixView<double> a, double beta,
                                   MatrixView<double> out) {
  PHIMAP_CHECK(out.rows() == out.cols() && out.rows() == a.cols());
  if (Empty(out.rows(), out.cols())) return;
  cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, static_cast<int>(a.cols()),
              static_cast<int>(a.rows()), alpha, a.data(), Leading(a.stride()), beta, out.data(),
              Leading(out.stride()));
}

void MultiplyLowerTriangle(ConstMatrixView<double> l, MatrixView<double> out) {
  Triangle(/*solve=*/false, CblasNoTrans, l, out);
}

// This solve and the two below halve their triangle recursively, so that everything except the
// diagonal blocks of 64 rows is a matrix product. OpenBLAS's own dtrsm would take three times as
// long per operation.
void SolveLowerTriangle(ConstMatrixView<double> l, MatrixView<double> out) {
  const int64_t m = l.rows();
  if (m <= kSolvedAtOnce) return Triangle(/*solve=*/true, CblasNoTrans, l, out);
  PHIMAP_CHECK(m == l.cols() && m == out.rows());
  const int64_t half = HalfOf(m);
  const MatrixView<double> rest = out.Rows(half, m - half);
  SolveLowerTriangle(l.Block(0, 0, half, half), out.Rows(0, half));
  Multiply(-1, l.Block(half, 0, m - half, half), out.Rows(0, half), 1, rest);
  SolveLowerTriangle(l.Block(half, half, m - half, m - half), rest);
}

void SolveLowerTriangleTransposed(ConstMatrixView<double> l, MatrixView<double> out) {
  const int64_t m = l.rows();
  if (m <= kSolvedAtOnce) return Triangle(/*solve=*/true, CblasTrans, l, out);
  PHIMAP_CHECK(m == l.cols() && m == out.rows());
  const int64_t half = HalfOf(m);
  const MatrixView<double> rest = out.Rows(half, m - half);
  SolveLowerTriangleTransposed(l.Block(half, half, m - half, m - half), rest);
  // Subtracts the contribution of `rest`, the rows that are already solved.
  MultiplyFirstTransposed(-1, l.Block(half, 0, m - half, half), rest, 1, out.Rows(0, half));
  SolveLowerTriangleTransposed(l.Block(0, 0, half, half), out.Rows(0, half));
}

void SolveLowerTriangleFromRight(ConstMatrixView<double> l, MatrixView<double> out) {
  const int64_t m = l.rows();
  PHIMAP_CHECK(m == l.cols() && m == out.cols());
  if (Empty(out.rows(), out.cols())) return;
  if (m <= kSolvedAtOnce) {
    cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit,
                static_cast<int>(out.rows()), static_cast<int>(m), 1.0, l.data(),
                Leading(l.stride()), out.data(), Leading(out.stride()));
    return;
  }
  const int64_t half = HalfOf(m);
  const MatrixView<double> done = out.Block(0, 0, out.rows(), half);
  const MatrixView<double> rest = out.Block(0, half, out.rows(), m - half);
  SolveLowerTriangleFromRight(l.Block(0, 0, half, half), done);
  MultiplyTransposed(-1, done, l.Block(half, 0, m - half, half), 1, rest);
  SolveLowerTriangleFromRight(l.Block(half, half, m - half, m - half), rest);
}

bool FactorPositiveDefinite(MatrixView<double> m) {
  PHIMAP_CHECK(m.rows() == m.cols());
  // A row-major lower triangle is a column-major upper one of the same symmetric matrix.
  const int info = LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'U', static_cast<int>(m.rows()), m.data(),
                                  Leading(m.stride()));
  PHIMAP_CHECK(info >= 0);
  return info == 0;
}

bool InvertPositiveDefinite(MatrixView<double> m) {
  if (!FactorPositiveDefinite(m)) return false;
  const int info = LAPACKE_dpotri_work(LAPACK_COL_MAJOR, 'U', static_cast<int>(m.rows()), m.data(),
                                       Leading(m.stride()));
  PHIMAP_CHECK(info >= 0);
  return info == 0;
}

absl::StatusOr<std::vector<double>> SymmetricEigenvalues(MatrixView<double> m) {
  PHIMAP_CHECK(m.rows() == m.cols());
  std::vector<double> values(static_cast<size_t>(m.rows()));
  if (values.empty()) return values;
  // A row-major lower triangle is a column-major upper one of the same symmetric matrix.
  const int info = LAPACKE_dsyev(LAPACK_COL_MAJOR, 'N', 'U', static_cast<int>(m.rows()), m.data(),
                                 Leading(m.stride()), values.data());
  if (info == LAPACK_WORK_MEMORY_ERROR) throw std::bad_alloc();
  PHIMAP_CHECK(info >= 0);
  if (info == 0) return values;
  return absl::InternalError(absl::StrCat("dsyev: ", info, " eigenvalues did not converge"));
}

absl::StatusOr<std::vector<double>> SymmetricEigenvectors(MatrixView<double> m) {
  PHIMAP_CHECK(m.rows() == m.cols());
  std::vector<double> values(static_cast<size_t>(m.rows()));
  if (values.empty()) return values;
  // Our rows are LAPACK's columns: our lower triangle is LAPACK's upper one, and the eigenvectors
  // that LAPACK leaves as columns are our rows.
  const int info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'U', static_cast<int>(m.rows()), m.data(),
                                  Leading(m.stride()), values.data());
  if (info == LAPACK_WORK_MEMORY_ERROR) throw std::bad_alloc();
  PHIMAP_CHECK(info >= 0);
  if (info == 0) return values;
  return absl::InternalError(absl::StrCat("dsyevd: ", info, " eigenvalues did not converge"));
}

}  // namespace phimap
