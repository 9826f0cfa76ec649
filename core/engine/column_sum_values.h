// Computes each column sum of a program for rows and landmarks.
#ifndef PHIMAP_CORE_ENGINE_COLUMN_SUM_VALUES_H_
#define PHIMAP_CORE_ENGINE_COLUMN_SUM_VALUES_H_

#include <memory>
#include <vector>

#include "core/engine/pair_values.h"
#include "core/kernel/column_sum_rows.h"

namespace phimap {

// Holds the columns of the landmarks that each sum reads.
template <typename T>
class ColumnSumValues final : public PairValues<T> {
 public:
  // Returns null if the program has no column sums.
  static std::unique_ptr<const PairValues<T>> Make(const KernelProgram& program,
                                                   const Matrix<T>& landmarks);

  int64_t count() const override { return static_cast<int64_t>(sums_.size()); }
  // REQUIRES: dense rows.
  void Compute(const TileRows<T>& x, T* const* values, T* const* self,
               EngineScratch& scratch) const override;
  void ComputeSelf(const TileRows<T>& x, T* const* self) const override;
  int64_t memory_bytes() const override;
  int64_t multiplications() const override;

 private:
  ColumnSumValues(const KernelProgram& program, const Matrix<T>& landmarks);

  const KernelProgram program_;  // owns the sums
  const int64_t columns_;
  std::vector<ColumnSumRows<T>> sums_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_COLUMN_SUM_VALUES_H_
