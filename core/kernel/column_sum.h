// Sums over columns, K(x, a) = Σ_k w_k·g(x_k, a_k). Kernel programs read them for a pair of rows
// beside products of whole rows, bilinear forms and distances.
#ifndef PHIMAP_CORE_KERNEL_COLUMN_SUM_H_
#define PHIMAP_CORE_KERNEL_COLUMN_SUM_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/kernel/rounded_value.h"

namespace phimap {

// X(name, number): the terms g(x, a). Numbers belong to the artifact format and are never reused.
// The last three terms are for x, a ≥ 0: they are NaN if x or a is negative, and 0/0 is 0.
#define PHIMAP_COLUMN_TERMS(X)                        \
  X(kProduct, 1)            /* xa */                  \
  X(kAbsoluteDifference, 2) /* |x − a| */           \
  X(kSquaredDifference, 3)  /* (x − a)² */         \
  X(kHarmonicMean, 4)       /* 2xa/(x + a) */         \
  X(kChiSquare, 5)          /* (x − a)²/(x + a) */ \
  X(kMinimum, 6)            /* min(x, a) */

enum class ColumnTerm : uint8_t {
#define PHIMAP_ENUMERATOR(NAME, CODE) NAME = CODE,
  PHIMAP_COLUMN_TERMS(PHIMAP_ENUMERATOR)
#undef PHIMAP_ENUMERATOR
};

struct ColumnSum {
  ColumnTerm term = ColumnTerm::kProduct;
  // w_k is the weight of column first + k. If empty, every column from `first` on has weight 1.
  int64_t first = 0;
  std::vector<double> weights;

  // Returns the number of columns that the sum reads of rows of `columns` numbers.
  int64_t TakenOf(int64_t columns) const {
    return weights.empty() ? columns - first : static_cast<int64_t>(weights.size());
  }
  // Returns the least number of columns that rows must have.
  int64_t LeastColumns() const { return first + TakenOf(first + 1); }
  // Returns w_k, for k ≥ 0.
  double WeightOf(int64_t k) const { return weights.empty() ? 1 : weights[k]; }
  // Returns K(x, x) of a row of `columns` numbers, summed in float64 from the first column on.
  template <typename T>
  double Self(const T* x, int64_t columns) const;
  // Returns the size of a row, from which bounds on the sum follow: Σ w|x|, or √(Σ wx²) for
  // products and squared differences.
  double SizeOf(const double* x, int64_t columns) const;

  friend bool operator==(const ColumnSum&, const ColumnSum&) = default;
};

// Returns what is wrong with a sum of untrusted numbers, or "" if it is valid.
absl::string_view WhyInvalid(const ColumnSum& sum);

// Returns the range and the error of the sum of a pair, computed in some float type. `x` is the
// size of row x (SizeOf); the other rows have sizes from `least` to `most`. `sum_roundings`: the
// error of a sum over the columns, divided by u and by the sum of the terms' magnitudes. `lost`:
// the error from numbers too small for the type, divided by u.
RoundedValue RoundedColumnSum(ColumnTerm term, double x, double least, double most,
                              double sum_roundings, double lost);
// Like RoundedColumnSum, for K(x, x), whose value is `self`.
RoundedValue RoundedSelfSum(ColumnTerm term, double self, double sum_roundings, double lost);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_COLUMN_SUM_H_
