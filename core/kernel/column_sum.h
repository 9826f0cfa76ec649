// Sums over columns, K(x, a) = Σ_k w_k·g(x_k, a_k), with a weight w_k for each column k. Kernel
// programs read the column sums of a pair of rows, just as they read products of whole rows,
// bilinear forms and distances.
#ifndef PHIMAP_CORE_KERNEL_COLUMN_SUM_H_
#define PHIMAP_CORE_KERNEL_COLUMN_SUM_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/kernel/rounded_value.h"

namespace phimap {

// X(name, number) lists the terms g(x, a). The numbers are part of the artifact format and are
// never reused. The last three terms are meant for x, a ≥ 0. They are NaN if x or a is negative.
// Where a quotient would be 0/0, the term is 0.
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
  // weights[k] is w_k, the weight of column first + k. If `weights` is empty, every column from
  // `first` on has weight 1.
  int64_t first = 0;
  std::vector<double> weights;

  // Returns how many columns the sum reads in a row of `columns` numbers.
  int64_t ColumnsReadOf(int64_t columns) const {
    return weights.empty() ? columns - first : static_cast<int64_t>(weights.size());
  }
  // Returns the least number of columns that rows must have.
  int64_t LeastColumns() const { return first + ColumnsReadOf(first + 1); }
  // Returns w_k, for k ≥ 0.
  double WeightOf(int64_t k) const { return weights.empty() ? 1 : weights[k]; }
  // Returns K(x, x) of a row of `columns` numbers, summed in float64 from the first column on.
  template <typename T>
  double Self(const T* x, int64_t columns) const;
  // Returns the size of a row, √(Σ w·x²) for products and squared differences, and Σ w·|x| for all
  // other terms. The sizes of two rows give a bound on their column sum K.
  double SizeOf(const double* x, int64_t columns) const;

  friend bool operator==(const ColumnSum&, const ColumnSum&) = default;
};

// Returns what is wrong with `sum`, whose numbers are not trusted, or "" if it is valid.
absl::string_view WhyInvalid(const ColumnSum& sum);

// Returns the range of the sum for a pair of rows, and its error when it is computed in a float
// type with unit round-off u. `x` is the size of one row (SizeOf). The size of the other row is
// between `least` and `most`. A sum over the columns has an error of `sum_roundings`·u times the
// sum of the magnitudes of its terms. Numbers that are too small for the type add an error of
// `lost`·u.
RoundedValue RoundedColumnSum(ColumnTerm term, double x, double least, double most,
                              double sum_roundings, double lost);
// Like RoundedColumnSum, for K(x, x), whose value is `self`.
RoundedValue RoundedSelfSum(ColumnTerm term, double self, double sum_roundings, double lost);

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_COLUMN_SUM_H_
