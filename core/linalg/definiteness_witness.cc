#include "core/linalg/definiteness_witness.h"

#include <cmath>

namespace phimap {

DefinitenessWitness WitnessOf(const std::vector<double>& z,
                              absl::FunctionRef<double(int64_t, int64_t)> entry) {
  long double value = 0;
  long double root = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(z.size()); ++i) {
    const double self = entry(i, i);
    root += std::abs(static_cast<long double>(z[i])) * std::sqrt(std::abs(self));
    long double row = static_cast<long double>(z[i]) * self;
    for (int64_t j = 0; j < i; ++j) row += 2 * static_cast<long double>(z[j]) * entry(i, j);
    value += row * z[i];
  }
  return {static_cast<double>(value), static_cast<double>(root * root)};
}

}  // namespace phimap
