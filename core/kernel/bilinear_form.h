// A symmetric matrix A of a kernel xᵀAy, dense or diagonal.
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
  // Entries of A, row by row; only the diagonal if `diagonal`.
  std::vector<double> numbers;

  int64_t NumberCount() const { return diagonal ? columns : columns * columns; }
  // Computes out = A·x, `columns` numbers, in float64. Products are rounded and summed from the
  // first column on, so the bits are the same everywhere. `out` must not alias anything.
  template <typename T>
  void Apply(const T* x, double* out) const;
  // Returns xᵀAx.
  template <typename T>
  double Square(const T* x) const;

  // Computes out = |A|·|x| from the magnitudes of all entries; bounds the rounding of Apply. `out`
  // must not alias anything.
  void ApplyMagnitudes(const double* x, double* out) const;

  // Returns OK if A is positive semidefinite up to round-off (columns · 2⁻⁵⁰ of its largest
  // diagonal entry); otherwise INVALID_ARGUMENT that names the rows that prove it is not. REQUIRES:
  // A is symmetric.
  absl::Status CheckPositiveSemidefinite() const;

  friend bool operator==(const BilinearForm&, const BilinearForm&) = default;

 private:
  // Row i of A times x.
  template <typename T>
  double RowProduct(int64_t i, const T* x) const;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_BILINEAR_FORM_H_
