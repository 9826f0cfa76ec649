#include "core/engine/l1_runner.h"

namespace phimap {

template <typename T>
void L1Runner<T>::Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
                      EngineScratch& scratch) const {
  rows_.L1Distances(x.x, x.stride, x.count, z);
  if (!kernel_.program().is_identity()) {
    kernel_.Evaluate({.rows = x.count, .products = z, .l1_distances = z}, z,
                     scratch.Of<typename LandmarkKernel<T>::Memory>());
  }
  for (int64_t i = 0; i < x.count; ++i) {
    if (!AllFinite(x.row(i), rows_.depth())) finite[i] = false;
  }
  if (check == FiniteCheck::kFeatures) CheckFinite(z, x.count, features(), finite);
}

template class L1Runner<float>;
template class L1Runner<double>;

}  // namespace phimap
