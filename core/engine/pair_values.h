// Values that a kernel program reads of each pair of a row and a landmark, in addition to products
// and distances, and values of rows with themselves.
//
// To add a kind of pair values, derive a class from PairValues and add it to PairValueList::Of.
#ifndef PHIMAP_CORE_ENGINE_PAIR_VALUES_H_
#define PHIMAP_CORE_ENGINE_PAIR_VALUES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/engine/stages.h"
#include "core/kernel/kernel_program.h"
#include "core/linalg/matrix.h"

namespace phimap {

// Values v_0 … v_{count−1} of one kind, for instance one for each bilinear form of a program. Holds
// what the values need of the landmarks a_j. Immutable, thread-safe.
template <typename T>
class PairValues {
 public:
  virtual ~PairValues() = default;
  // Number of values of each pair.
  virtual int64_t count() const = 0;

  // Computes the values v_m, 0 <= m < count(), of each row x_i with each landmark a_j:
  // values[m * x.count + i][j] = v_m(x_i, a_j). Unless `self` is null, also computes self[m][i] =
  // v_m(x_i, x_i).
  virtual void Compute(const TileRows<T>& x, T* const* values, T* const* self,
                       EngineScratch& scratch) const = 0;
  // Computes only self[m][i], for any number of rows.
  virtual void ComputeSelf(const TileRows<T>& x, T* const* self) const = 0;

  virtual int64_t memory_bytes() const = 0;
  // Multiplications of a dense row.
  virtual int64_t multiplications() const = 0;
};

// Values of all kinds, one after the other in the order of their numbers in a program.
template <typename T>
class PairValueList {
 public:
  PairValueList() = default;
  // Makes every kind that `program` reads, for landmarks that are rows of numbers.
  static PairValueList Of(const KernelProgram& program, const Matrix<T>& landmarks);

  bool empty() const { return kinds_.empty(); }
  int64_t count() const;
  // Computes PairValues of all kinds.
  void Compute(const TileRows<T>& x, T* const* values, T* const* self,
               EngineScratch& scratch) const;
  void ComputeSelf(const TileRows<T>& x, T* const* self) const;
  int64_t memory_bytes() const;
  int64_t multiplications() const;

 private:
  std::vector<std::unique_ptr<const PairValues<T>>> kinds_;
};

// Memory for v_m(x, x) of each pair value m and f_m(x) of each factor m, for some rows. The owner
// fills it.
template <typename T>
class SelfValues {
 public:
  // Reserves memory for `rows` rows. Earlier contents are lost.
  void Reserve(int64_t pair_values, int64_t factors, int64_t rows) {
    Grow(numbers_, (pair_values + factors) * rows);
    rows_.clear();
    for (int64_t m = 0; m < pair_values + factors; ++m) {
      rows_.push_back(numbers_.data() + m * rows);
    }
    pair_values_ = pair_values;
  }

  // pair_values()[m][i] = v_m(x_i, x_i), factors()[m][i] = f_m(x_i).
  T* const* pair_values() const { return rows_.data(); }
  T* const* factors() const { return rows_.data() + pair_values_; }
  int64_t memory_bytes() const { return numbers_.size() * static_cast<int64_t>(sizeof(T)); }

 private:
  AlignedArray<T> numbers_;
  std::vector<T*> rows_;
  int64_t pair_values_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_PAIR_VALUES_H_
