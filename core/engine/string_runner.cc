#include "core/engine/string_runner.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/number_rows.h"

namespace phimap {

template <typename T>
struct StringRunner<T>::Memory {
  NumberRows<T> values;
  SelfValues<T> self;
  typename LandmarkKernel<T>::Memory row;
};

// Strings have no norms, so a program that reads a norm reads 0.
template <typename T>
StringRunner<T>::StringRunner(const StringFeatures& features)
    : values_(features.program.strings(), features.strings),
      kernel_(features.program, static_cast<int64_t>(features.strings.size())) {
  const int64_t count = static_cast<int64_t>(features.strings.size());
  kernel_.TakeNorms(std::vector<T>(static_cast<size_t>(count), T{0}));
  const int64_t factors = static_cast<int64_t>(features.program.factors().size());
  if (factors == 0) return;
  std::vector<const std::string*> strings;
  for (const std::string& string : features.strings) strings.push_back(&string);
  SelfValues<T> self;
  self.Reserve(values_.count(), factors, count);
  values_.ComputeSelf({.count = count, .strings = strings.data()}, self.pair_values());
  kernel_.TakeSelfValues(std::move(self));
}

template <typename T>
void StringRunner<T>::Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
                          EngineScratch& scratch) const {
  Memory& memory = scratch.Of<Memory>();
  static constexpr std::array<T, kMaxTileRows> kNorms{};
  T* const* const values = memory.values.Allocate(values_.count() * x.count, kernel_.landmarks());
  memory.self.Reserve(values_.count(), static_cast<int64_t>(kernel_.program().factors().size()),
                      x.count);
  values_.Compute(x, values, memory.self.pair_values(), scratch);
  kernel_.Evaluate(
      {.rows = x.count, .norms = kNorms.data(), .pair_values = values, .self = &memory.self}, z,
      memory.row);
  if (check == FiniteCheck::kFeatures) CheckFinite(z, x.count, features(), finite);
}

template class StringRunner<float>;
template class StringRunner<double>;

}  // namespace phimap
