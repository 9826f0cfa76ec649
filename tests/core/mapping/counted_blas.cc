#include "tests/core/mapping/counted_blas.h"

#include <cblas.h>
#include <dlfcn.h>

namespace {

double flops = 0;

// Returns the BLAS library's own routine, which is hidden by the routine of the same name in this
// file.
template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

void cblas_dgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
                 double alpha, const double* a, int lda, const double* b, int ldb, double beta,
                 double* c, int ldc) {
  static auto* const next = Next<decltype(cblas_dgemm)>("cblas_dgemm");
  flops += 2.0 * m * n * k;
  next(layout, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void cblas_dgemv(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE t, int m, int n, double alpha,
                 const double* a, int lda, const double* x, int incx, double beta, double* y,
                 int incy) {
  static auto* const next = Next<decltype(cblas_dgemv)>("cblas_dgemv");
  flops += 2.0 * m * n;
  next(layout, t, m, n, alpha, a, lda, x, incx, beta, y, incy);
}

void cblas_dsyrk(CBLAS_LAYOUT layout, CBLAS_UPLO uplo, CBLAS_TRANSPOSE t, int n, int k,
                 double alpha, const double* a, int lda, double beta, double* c, int ldc) {
  static auto* const next = Next<decltype(cblas_dsyrk)>("cblas_dsyrk");
  flops += 1.0 * n * (n + 1) * k;
  next(layout, uplo, t, n, k, alpha, a, lda, beta, c, ldc);
}

void cblas_dtrsm(CBLAS_LAYOUT layout, CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_TRANSPOSE t,
                 CBLAS_DIAG diag, int m, int n, double alpha, const double* a, int lda, double* b,
                 int ldb) {
  static auto* const next = Next<decltype(cblas_dtrsm)>("cblas_dtrsm");
  flops += side == CblasLeft ? 1.0 * m * m * n : 1.0 * n * n * m;
  next(layout, side, uplo, t, diag, m, n, alpha, a, lda, b, ldb);
}

}  // extern "C"

namespace phimap::testing {

double BlasFlops() { return flops; }

}  // namespace phimap::testing
