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
  // Row after row; the diagonal alone if `diagonal`.
  std::vector<double> numbers;

  int64_t NumberCount() const { return diagonal ? columns : columns * columns; }
  // out = A·x, `columns` numbers, in float64. Products are rounded and summed from the first column
  // on, so that the bits are the same everywhere. out must not alias x.
  template <typename T>
  void Apply(const T* x, double* out) const;
  // The quadratic form xᵀAx.
  template <typename T>
  double Square(const T* x) const;

  // out = |A|·|x|, entry by entry: bounds the rounding of Apply. out aliases nothing.
  void ApplyMagnitudes(const double* x, double* out) const;

  // OK for a positive semidefinite matrix up to round-off (columns · 2⁻⁵⁰ of its largest diagonal
  // entry); otherwise an INVALID_ARGUMENT with a witness. REQUIRES: symmetric.
  absl::Status CheckPositiveSemidefinite() const;

  friend bool operator==(const BilinearForm&, const BilinearForm&) = default;

 private:
  // Row i of A times x.
  template <typename T>
  double RowProduct(int64_t i, const T* x) const;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_BILINEAR_FORM_H_
