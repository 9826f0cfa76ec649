// Counts the floating-point operations of this process in BLAS. If a test links this file, the BLAS
// calls in core/linalg/blas.cc go through counting wrappers.
#ifndef PHIMAP_TESTS_CORE_MAPPING_COUNTED_BLAS_H_
#define PHIMAP_TESTS_CORE_MAPPING_COUNTED_BLAS_H_

namespace phimap::testing {

// Additions and multiplications since the start of the process, by the textbook count of each
// routine. Operations of LAPACK are not counted.
double BlasFlops();

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_MAPPING_COUNTED_BLAS_H_
