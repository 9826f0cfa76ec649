// Values k_m(x, a_j) of each string kernel of a program.
#ifndef PHIMAP_CORE_ENGINE_STRING_VALUES_H_
#define PHIMAP_CORE_ENGINE_STRING_VALUES_H_

#include <string>
#include <vector>

#include "core/engine/pair_values.h"
#include "core/kernel/string_kernel.h"

namespace phimap {

// Holds an index of the landmarks, which are strings. Values are computed in float64
// (StringIndex::Values) and rounded once to T.
template <typename T>
class StringValues final : public PairValues<T> {
 public:
  StringValues(const std::vector<StringKernel>& kernels, const std::vector<std::string>& landmarks);

  int64_t count() const override { return static_cast<int64_t>(kernels_.size()); }
  // REQUIRES: rows are strings.
  void Compute(const TileRows<T>& x, T* const* values, T* const* self,
               EngineScratch& scratch) const override;
  void ComputeSelf(const TileRows<T>& x, T* const* self) const override;
  int64_t memory_bytes() const override { return index_.memory_bytes(); }
  int64_t multiplications() const override { return 0; }
  // The time for a string depends on the number of its n-grams, so its cost is counted per byte.
  double multiplications_per_byte() const;

 private:
  struct Memory;

  const std::vector<StringKernel> kernels_;
  StringIndex index_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_STRING_VALUES_H_
