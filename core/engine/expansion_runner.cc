#include "core/engine/expansion_runner.h"

namespace phimap {

template <typename T>
void ExpansionRunner<T>::Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
                             EngineScratch& /*scratch*/) const {
  const int32_t* const columns = expansion_.columns.data();
  const int64_t features = this->features();
  for (int64_t i = 0; i < x.count; ++i) {
    const T* const row = x.row(i);
    for (int64_t j = 0; j < features; ++j) {
      T value = expansion_.coefficients[j];
      for (int64_t k = j * expansion_.degree; k < (j + 1) * expansion_.degree; ++k) {
        if (columns[k] >= 0) value *= row[columns[k]];
      }
      z[i][j] = value;
    }
  }
  if (check == FiniteCheck::kFeatures) CheckFinite(z, x.count, features, finite);
}

template class ExpansionRunner<float>;
template class ExpansionRunner<double>;

}  // namespace phimap
