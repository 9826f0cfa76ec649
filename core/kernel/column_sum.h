// Sums over columns, K(x, a) = Σ_k w_k·g(x_k, a_k): what kernel programs read of a pair beside
// products with all columns, bilinear forms and distances.
#ifndef PHIMAP_CORE_KERNEL_COLUMN_SUM_H_
#define PHIMAP_CORE_KERNEL_COLUMN_SUM_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/kernel/rounded_value.h"

namespace phimap {

// X(name, number): g(x, a). Numbers are of the artifact format, and never reused. The last three
// are for x, a ≥ 0: NaN where one is negative; 0/0 is 0.
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
  // w_k of column first + k; empty: every column from `first` on, each of weight 1.
  int64_t first = 0;
  std::vector<double> weights;

  // Columns that it takes of rows of `columns` numbers.
  int64_t TakenOf(int64_t columns) const {
    return weights.empty() ? columns - first : static_cast<int64_t>(weights.size());
  }
  // Columns that rows have at least.
  int64_t LeastColumns() const { return first + TakenOf(first + 1); }
  // w_k, k from 0 on.
  double WeightOf(int64_t k) const { return weights.empty() ? 1 : weights[k]; }
  // K(x, x) of a row of `columns` numbers, in float64, from the first column on.
  template <typename T>
  double Self(const T* x, int64_t columns) const;
  // Size of a row, which bounds the sum: Σ w|x|, or √(Σ wx²) for products and squares.
  double SizeOf(const double* x, int64_t columns) const;

  friend bool operator==(const ColumnSum&, const ColumnSum&) = default;
};

// "" or what is wrong with it, of untrusted numbers.
absl::string_view WhyInvalid(const ColumnSum& sum);

// Range and error of the sum of a pair, computed in some type: x of size `x`, and rows of sizes
// from `least` to `most`. `sum_roundings`: the error of a sum over the columns, divided by u and by
// the sum of the terms' magnitudes. `lost`: what sums lose of numbers too small for the type.
RoundedValue RoundedColumnSum(ColumnTerm term, double x, double least, double most,
                              double sum_roundings, double lost);
// Rounding of K(x, x), whose value is `self`.
RoundedValue RoundedSelfSum(ColumnTerm term, double self, double sum_roundings, double lost);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_COLUMN_SUM_H_
