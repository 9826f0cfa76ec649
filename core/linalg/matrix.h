// Row-major matrices and views of them.
//
// A Matrix owns cache-line aligned memory; a view is a pointer with a shape and must not outlive
// its memory. Element (i, j) of a view is data[i * stride + j].
//
// Large arrays are asked to lie in pages of 2 MiB.
#ifndef PHIMAP_CORE_LINALG_MATRIX_H_
#define PHIMAP_CORE_LINALG_MATRIX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "core/status/check.h"

namespace phimap {

inline constexpr size_t kAlignmentBytes = 64;

// A row-major rows×cols block inside another object's memory. T is const for read-only views.
template <typename T>
class BasicMatrixView {
 public:
  BasicMatrixView() = default;
  BasicMatrixView(T* data, int64_t rows, int64_t cols, int64_t stride)
      : data_(data), rows_(rows), cols_(cols), stride_(stride) {
    PHIMAP_CHECK(rows >= 0 && cols >= 0 && (stride >= cols || rows <= 1));
  }
  BasicMatrixView(T* data, int64_t rows, int64_t cols) : BasicMatrixView(data, rows, cols, cols) {}
  // Converts a writable view to a read-only one.
  template <typename U, typename = std::enable_if_t<std::is_same_v<const U, T>>>
  BasicMatrixView(const BasicMatrixView<U>& other)  // NOLINT: implicit, as pointer to const is
      : BasicMatrixView(other.data(), other.rows(), other.cols(), other.stride()) {}

  T* data() const { return data_; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t stride() const { return stride_; }
  T* row(int64_t i) const { return data_ + i * stride_; }
  T& operator()(int64_t i, int64_t j) const { return data_[i * stride_ + j]; }
  // Returns the block of `rows` × `cols` whose first element is (i, j).
  BasicMatrixView Block(int64_t i, int64_t j, int64_t rows, int64_t cols) const {
    PHIMAP_CHECK(i >= 0 && j >= 0 && i + rows <= rows_ && j + cols <= cols_);
    return BasicMatrixView(data_ + i * stride_ + j, rows, cols, stride_);
  }
  BasicMatrixView Rows(int64_t i, int64_t count) const { return Block(i, 0, count, cols_); }

 private:
  T* data_ = nullptr;
  int64_t rows_ = 0;
  int64_t cols_ = 0;
  int64_t stride_ = 0;
};

template <typename T>
using MatrixView = BasicMatrixView<T>;
template <typename T>
using ConstMatrixView = BasicMatrixView<const T>;

// Asks the system to back an array, to which nothing has been written yet, with pages of 2 MiB
// where they lie completely within it. Systems without such pages ignore the request. Costs no
// memory.
void AskForLargePages(void* begin, size_t bytes);

// Uninitialised memory for `count` numbers, aligned to kAlignmentBytes or to a larger power of two.
// Throws std::bad_alloc.
template <typename T>
class AlignedArray {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  AlignedArray() = default;
  explicit AlignedArray(int64_t count, size_t alignment = kAlignmentBytes)
      : data_(count == 0 ? nullptr
                         : static_cast<T*>(::operator new(sizeof(T) * static_cast<size_t>(count),
                                                          std::align_val_t(alignment))),
              Free{alignment}),
        size_(count) {}
  T* data() const { return data_.get(); }
  int64_t size() const { return size_; }

 private:
  struct Free {
    size_t alignment = kAlignmentBytes;
    void operator()(T* p) const { ::operator delete(p, std::align_val_t(alignment)); }
  };
  std::unique_ptr<T, Free> data_;
  int64_t size_ = 0;
};

// Returns the stride for rows of `cols` numbers that are read side by side. The stride is an odd
// number of cache lines. The same column of several rows then falls into different sets of the
// first-level cache. With a stride that is a multiple of 4 KiB, 12 rows would share the 8 lines of
// one set. With 2,048 columns, this made the panel product a third slower.
template <typename T>
int64_t SpreadStride(int64_t cols) {
  constexpr int64_t kLine = static_cast<int64_t>(kAlignmentBytes / sizeof(T));
  return ((cols + kLine - 1) / kLine | 1) * kLine;
}

// A row-major rows×cols matrix, contiguous (stride = cols), zero-filled when made. Movable; copied
// only by Clone.
template <typename T>
class Matrix {
 public:
  Matrix() = default;
  Matrix(int64_t rows, int64_t cols) : Matrix(rows, cols, Uninitialized{}) {
    if (array_.size() > 0) std::memset(array_.data(), 0, sizeof(T) * array_.size());
  }
  // Leaves the elements uninitialised, for a caller that sets all of them.
  static Matrix Uninit(int64_t rows, int64_t cols) { return Matrix(rows, cols, Uninitialized{}); }

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t size() const { return rows_ * cols_; }
  bool empty() const { return size() == 0; }
  T* data() { return array_.data(); }
  const T* data() const { return array_.data(); }
  T* row(int64_t i) { return data() + i * cols_; }
  const T* row(int64_t i) const { return data() + i * cols_; }
  T& operator()(int64_t i, int64_t j) { return data()[i * cols_ + j]; }
  const T& operator()(int64_t i, int64_t j) const { return data()[i * cols_ + j]; }
  MatrixView<T> view() { return {data(), rows_, cols_}; }
  ConstMatrixView<T> view() const { return {data(), rows_, cols_}; }
  Matrix Clone() const {
    Matrix copy = Uninit(rows_, cols_);
    std::copy_n(data(), size(), copy.data());
    return copy;
  }

 private:
  struct Uninitialized {};
  // Builds make many arrays of some MiB and drop them again. With pages of 4 KiB, a third of the
  // time of a build was spent on page faults.
  static constexpr size_t kLargeBytes = size_t{4} << 20;
  Matrix(int64_t rows, int64_t cols, Uninitialized)
      : rows_(rows), cols_(cols), array_(rows * cols) {
    PHIMAP_CHECK(rows >= 0 && cols >= 0);
    const size_t bytes = sizeof(T) * static_cast<size_t>(array_.size());
    if (bytes >= kLargeBytes) AskForLargePages(array_.data(), bytes);
  }
  int64_t rows_ = 0;
  int64_t cols_ = 0;
  AlignedArray<T> array_;
};

// Returns a copy with each element converted to To, rounded if necessary.
template <typename To, typename From>
Matrix<To> Converted(ConstMatrixView<From> from) {
  Matrix<To> to = Matrix<To>::Uninit(from.rows(), from.cols());
  for (int64_t i = 0; i < from.rows(); ++i) {
    for (int64_t j = 0; j < from.cols(); ++j) to(i, j) = static_cast<To>(from(i, j));
  }
  return to;
}

// Returns the transpose.
template <typename T>
Matrix<std::remove_const_t<T>> Transposed(MatrixView<T> a) {
  auto t = Matrix<std::remove_const_t<T>>::Uninit(a.cols(), a.rows());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.cols(); ++j) t(j, i) = a(i, j);
  }
  return t;
}

inline constexpr size_t kLargePageBytes = size_t{2} << 20;

// Returns an array for data that is read repeatedly. An array of 2 MiB or more begins at a page of
// 2 MiB and has as many such pages as fit. With pages of 4 KiB, a matrix of 8 MiB would take 2,048
// pages, more than the TLB of a core holds.
template <typename T>
AlignedArray<T> LargePageArray(int64_t count) {
  const size_t bytes = sizeof(T) * static_cast<size_t>(count);
  if (bytes < kLargePageBytes) return AlignedArray<T>(count);
  AlignedArray<T> array(count, kLargePageBytes);
  AskForLargePages(array.data(), bytes);
  return array;
}

}  // namespace phimap

#endif  // PHIMAP_CORE_LINALG_MATRIX_H_
