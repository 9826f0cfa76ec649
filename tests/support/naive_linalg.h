// Matrix products as textbook loops, with which fast code is compared.
#ifndef PHIMAP_TESTS_SUPPORT_NAIVE_LINALG_H_
#define PHIMAP_TESTS_SUPPORT_NAIVE_LINALG_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/linalg/matrix.h"

namespace phimap::testing {

// One element of the product z · W in long double. `magnitude` is the sum of |z|·|w| over its
// terms, from which tests compute error bounds.
struct NaiveSum {
  long double value = 0;
  long double magnitude = 0;
};
template <typename T, typename ElementZ, typename ElementW>
NaiveSum NaiveDot(int64_t depth, ElementZ z, ElementW w) {
  NaiveSum sum;
  for (int64_t k = 0; k < depth; ++k) {
    const long double term = static_cast<long double>(z(k)) * w(k);
    sum.value += term;
    sum.magnitude += std::abs(term);
  }
  return sum;
}

// Returns an element of a product by the definition of arithmetic 1. The values of k are divided
// into blocks of 512. Each block has a chain of fused multiply-adds, which starts from +0 and uses
// the values of k in order. Then the sums of the blocks are added to +0 in order. The number 512 is
// written out here because it is part of the artifact format.
template <typename T, typename ElementZ, typename ElementW>
T ChainDot(int64_t depth, ElementZ z, ElementW w) {
  T total = 0;
  for (int64_t begin = 0; begin < depth; begin += 512) {
    T sum = 0;
    for (int64_t k = begin; k < std::min<int64_t>(depth, begin + 512); ++k) {
      sum = std::fma(static_cast<T>(z(k)), static_cast<T>(w(k)), sum);
    }
    total += sum;
  }
  return total;
}

inline double Dot(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += a[k] * b[k];
  return sum;
}

template <typename T>
Matrix<T> NaiveTransposed(const Matrix<T>& a) {
  Matrix<T> t = Matrix<T>::Uninit(a.cols(), a.rows());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.cols(); ++j) t(j, i) = a(i, j);
  }
  return t;
}

// Returns a · bᵀ in float64, for sizes where long double would be slow.
inline Matrix<double> NaiveGram(const Matrix<double>& a, const Matrix<double>& b) {
  Matrix<double> gram(a.rows(), b.rows());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < b.rows(); ++j) {
      gram(i, j) = Dot(a.row(i), b.row(j), a.cols());
    }
  }
  return gram;
}

// The largest |a − b| of two matrices of one shape; infinity if the shapes differ or a difference
// is not a number.
template <typename T, typename U>
double LargestDifference(const Matrix<T>& a, const Matrix<U>& b) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (a.rows() != b.rows() || a.cols() != b.cols()) return kInfinite;
  double largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(double{a.data()[i]} - double{b.data()[i]});
    largest = std::isnan(difference) ? kInfinite : std::max(largest, difference);
  }
  return largest;
}

// Whether all numbers are equal in every bit, including the sign of zeros and the payload of NaNs.
template <typename T>
bool SameBits(const T* a, const T* b, int64_t count) {
  return count == 0 || std::memcmp(a, b, sizeof(T) * static_cast<size_t>(count)) == 0;
}
template <typename T>
bool SameBits(const Matrix<T>& a, const Matrix<T>& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() && SameBits(a.data(), b.data(), a.size());
}

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_NAIVE_LINALG_H_
