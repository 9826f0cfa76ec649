// The symmetric matrix A of a kernel xᵀAy, stored in full or, for a diagonal A, as its diagonal.
#ifndef PHIMAP_CORE_KERNEL_BILINEAR_FORM_H_
#define PHIMAP_CORE_KERNEL_BILINEAR_FORM_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace phimap {

struct BilinearForm {
  // A is columns × columns.
  int64_t columns = 0;
  bool diagonal = false;
  // The entries of A, row by row. If `diagonal`, only the entries on the diagonal.
  std::vector<double> numbers;

  int64_t NumberCount() const { return diagonal ? columns : columns * columns; }
  // Computes out = A·x, `columns` numbers, in float64. Each product is rounded, and products are
  // added from the first column on, so the result is bit-for-bit the same on every machine. `out`
  // must not alias anything.
  template <typename T>
  void Apply(const T* x, double* out) const;
  // Returns xᵀAx.
  template <typename T>
  double Square(const T* x) const;

  // Computes out = |A|·|x|, where |·| takes the magnitude of every entry. This serves to bound the
  // rounding errors of Apply. `out` must not alias anything.
  void ApplyMagnitudes(const double* x, double* out) const;

  // Returns OK if A is positive semidefinite up to round-off. The round-off allowed is columns ·
  // 2⁻⁵⁰ times the largest diagonal entry of A. Otherwise returns INVALID_ARGUMENT. The message
  // names rows of A that prove that A is not positive semidefinite. REQUIRES: A is symmetric.
  absl::Status CheckPositiveSemidefinite() const;

  friend bool operator==(const BilinearForm&, const BilinearForm&) = default;

 private:
  // Returns row i of A times x.
  template <typename T>
  double RowProduct(int64_t i, const T* x) const;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_BILINEAR_FORM_H_
