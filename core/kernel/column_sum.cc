#include "core/kernel/column_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/status/check.h"

namespace phimap {
namespace {

// Returns g(x, x), where g is the function that `term` stands for.
double SelfTerm(ColumnTerm term, double x) {
  switch (term) {
    case ColumnTerm::kProduct:
      return x * x;
    case ColumnTerm::kAbsoluteDifference:
    case ColumnTerm::kSquaredDifference:
      return 0;
    case ColumnTerm::kChiSquare:
      return x < 0 ? std::numeric_limits<double>::quiet_NaN() : 0;
    case ColumnTerm::kHarmonicMean:
    case ColumnTerm::kMinimum:
      return x < 0 ? std::numeric_limits<double>::quiet_NaN() : x;
  }
  PHIMAP_CHECK(false);
}

bool IsOfSquares(ColumnTerm term) {
  return term == ColumnTerm::kProduct || term == ColumnTerm::kSquaredDifference;
}

// Returns the number of roundings in one weighted term w·g(x, a), not counting those of the sum. To
// first order, a term has no other errors.
double RoundingsOf(ColumnTerm term) {
  switch (term) {
    case ColumnTerm::kMinimum:
      return 1;
    case ColumnTerm::kProduct:
    case ColumnTerm::kAbsoluteDifference:
      return 2;
    case ColumnTerm::kSquaredDifference:
      return 3;
    case ColumnTerm::kHarmonicMean:
      return 4;
    case ColumnTerm::kChiSquare:
      return 5;
  }
  PHIMAP_CHECK(false);
}

}  // namespace

template <typename T>
double ColumnSum::Self(const T* x, int64_t columns) const {
  double sum = 0;
  for (int64_t k = 0; k < ColumnsReadOf(columns); ++k) {
    if (WeightOf(k) == 0) continue;
    sum += WeightOf(k) * SelfTerm(term, static_cast<double>(x[first + k]));
  }
  return sum;
}

template double ColumnSum::Self(const float*, int64_t) const;
template double ColumnSum::Self(const double*, int64_t) const;

double ColumnSum::SizeOf(const double* x, int64_t columns) const {
  double sum = 0;
  for (int64_t k = 0; k < ColumnsReadOf(columns); ++k) {
    const double size = std::abs(x[first + k]);
    sum += WeightOf(k) * (IsOfSquares(term) ? size * size : size);
  }
  return IsOfSquares(term) ? std::sqrt(sum) : sum;
}

absl::string_view WhyInvalid(const ColumnSum& sum) {
  constexpr int64_t kMaxColumns = 65536;
  const int term = static_cast<int>(sum.term);
  if (term < static_cast<int>(ColumnTerm::kProduct) ||
      term > static_cast<int>(ColumnTerm::kMinimum)) {
    return "a column sum has terms of an unknown kind";
  }
  if (sum.first < 0 || sum.first >= kMaxColumns ||
      static_cast<int64_t>(sum.weights.size()) > kMaxColumns - sum.first) {
    return "a column sum reads columns outside of 0 to 65535";
  }
  const bool valid = std::all_of(sum.weights.begin(), sum.weights.end(),
                                 [](double w) { return w >= 0 && std::isfinite(w); });
  return valid ? "" : "a weight of a column sum is negative or not finite";
}

RoundedValue RoundedColumnSum(ColumnTerm term, double x, double least, double most,
                              double sum_roundings, double lost) {
  const double roundings = sum_roundings + RoundingsOf(term);
  const double apart = std::max({0.0, x - most, least - x});
  switch (term) {
    case ColumnTerm::kProduct:
      return {-x * most, x * most, roundings * x * most + lost, 0};
    case ColumnTerm::kAbsoluteDifference:
      return {apart, x + most, lost, roundings};
    case ColumnTerm::kSquaredDifference:
      return {apart * apart, (x + most) * (x + most), lost, roundings};
    case ColumnTerm::kHarmonicMean:  // a term is ≤ √(xa); Cauchy–Schwarz bounds the sum
      return {0, std::sqrt(x) * std::sqrt(most), lost, roundings};
    case ColumnTerm::kChiSquare:
      return {0, x + most, lost, roundings};
    case ColumnTerm::kMinimum:
      return {0, std::min(x, most), lost, roundings};
  }
  PHIMAP_CHECK(false);
}

RoundedValue RoundedSelfSum(ColumnTerm term, double self, double sum_roundings, double lost) {
  if (self == 0) return RoundedValue::Exactly(0);
  return {self, self, lost, sum_roundings + RoundingsOf(term)};
}

}  // namespace phimap
