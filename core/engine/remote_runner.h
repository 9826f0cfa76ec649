// The feature stage whose features are the rows themselves: values of a remote kernel, which were
// computed elsewhere.
#ifndef PHIMAP_CORE_ENGINE_REMOTE_RUNNER_H_
#define PHIMAP_CORE_ENGINE_REMOTE_RUNNER_H_

#include <algorithm>

#include "core/engine/feature_runner.h"

namespace phimap {

template <typename T>
class RemoteRunner final : public FeatureRunner<T> {
 public:
  explicit RemoteRunner(int64_t features) : features_(features) {}

  void Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
           EngineScratch& /*scratch*/) const override {
    for (int64_t i = 0; i < x.count; ++i) std::copy_n(x.row(i), features_, z[i]);
    if (check == FiniteCheck::kFeatures) CheckFinite(z, x.count, features_, finite);
  }

  int64_t features() const override { return features_; }
  int64_t memory_bytes() const override { return 0; }
  int64_t multiplications() const override { return features_; }

 private:
  const int64_t features_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_REMOTE_RUNNER_H_
