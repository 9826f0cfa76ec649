// Floating-point operations of the BLAS calls that this process makes. Linked into a
// test it stands between core/linalg/blas.cc and the library.
#ifndef PHIMAP_TESTS_CORE_MAPPING_COUNTED_BLAS_H_
#define PHIMAP_TESTS_CORE_MAPPING_COUNTED_BLAS_H_

namespace phimap::testing {

// Additions and multiplications since the start, by the textbook count of each routine. LAPACK's
// are not seen.
double BlasFlops();

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_MAPPING_COUNTED_BLAS_H_
