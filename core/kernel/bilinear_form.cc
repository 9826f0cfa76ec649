#include "core/kernel/bilinear_form.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/status/words.h"

namespace phimap {
namespace {

absl::Status NotSemidefinite(int64_t step, int64_t row, double value) {
  return absl::InvalidArgumentError(absl::StrCat("after elimination of ", CountOf(step, "row"),
                                                 ", the diagonal of row ", row + 1, " is ", value,
                                                 ", expected at least 0"));
}

}  // namespace

template <typename T>
double BilinearForm::RowProduct(int64_t i, const T* x) const {
  if (diagonal) return numbers[i] * static_cast<double>(x[i]);
  double sum = 0;
  for (int64_t k = 0; k < columns; ++k) {
    sum += numbers[i * columns + k] * static_cast<double>(x[k]);
  }
  return sum;
}

template <typename T>
void BilinearForm::Apply(const T* x, double* out) const {
  for (int64_t i = 0; i < columns; ++i) out[i] = RowProduct(i, x);
}

template <typename T>
double BilinearForm::Square(const T* x) const {
  double sum = 0;
  for (int64_t i = 0; i < columns; ++i) sum += RowProduct(i, x) * static_cast<double>(x[i]);
  return sum;
}

void BilinearForm::ApplyMagnitudes(const double* x, double* out) const {
  for (int64_t i = 0; i < columns; ++i) {
    out[i] = 0;
    if (diagonal) {
      out[i] = std::abs(numbers[i] * x[i]);
      continue;
    }
    for (int64_t k = 0; k < columns; ++k) out[i] += std::abs(numbers[i * columns + k] * x[k]);
  }
}

template void BilinearForm::Apply(const float* x, double* out) const;
template void BilinearForm::Apply(const double* x, double* out) const;
template double BilinearForm::Square(const float* x) const;
template double BilinearForm::Square(const double* x) const;

// Runs Cholesky with complete pivoting on a copy. Matrices are small, because the text of a kernel
// has at most kMaxExpressionBytes.
absl::Status BilinearForm::CheckPositiveSemidefinite() const {
  double largest = 0;
  for (int64_t i = 0; i < columns; ++i) {
    const double entry = numbers[diagonal ? i : i * columns + i];
    if (entry < 0) return NotSemidefinite(0, i, entry);
    largest = std::max(largest, entry);
  }
  if (diagonal) return absl::OkStatus();
  std::vector<double> m = numbers;
  std::vector<int64_t> left(columns);
  for (int64_t i = 0; i < columns; ++i) left[i] = i;
  const auto at = [&](int64_t i, int64_t j) -> double& { return m[i * columns + j]; };
  const double slack = static_cast<double>(columns) * std::ldexp(largest, -50);
  for (int64_t step = 0; !left.empty(); ++step) {
    const auto pivot = std::max_element(left.begin(), left.end(),
                                        [&](int64_t a, int64_t b) { return at(a, a) < at(b, b); });
    const int64_t p = *pivot;
    left.erase(pivot);
    if (at(p, p) <= slack) {
      // The remaining diagonal is 0 up to round-off. If an off-diagonal entry of the rest is not 0,
      // a 2×2 minor is negative.
      left.push_back(p);
      for (const int64_t i : left) {
        if (at(i, i) < -slack) return NotSemidefinite(step, i, at(i, i));
        for (const int64_t j : left) {
          if (std::abs(at(i, j)) <= 2 * slack) continue;
          return absl::InvalidArgumentError(absl::StrCat(
              "after ", step, " pivots the minor of rows ", i + 1, " and ", j + 1, " is negative"));
        }
      }
      return absl::OkStatus();
    }
    for (const int64_t i : left) {
      for (const int64_t j : left) at(i, j) -= at(i, p) * at(p, j) / at(p, p);
    }
  }
  return absl::OkStatus();
}

}  // namespace phimap
