// The feature stage whose features are monomials of the columns.
#ifndef PHIMAP_CORE_ENGINE_EXPANSION_RUNNER_H_
#define PHIMAP_CORE_ENGINE_EXPANSION_RUNNER_H_

#include "core/engine/feature_runner.h"
#include "core/plan/plan.h"

namespace phimap {

template <typename T>
class ExpansionRunner final : public FeatureRunner<T> {
 public:
  explicit ExpansionRunner(const ExpansionFeatures<T>& expansion) : expansion_(expansion) {}

  // Multiplies factor by factor, in the order of the columns.
  void Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
           EngineScratch& scratch) const override;

  int64_t features() const override { return static_cast<int64_t>(expansion_.coefficients.size()); }
  int64_t memory_bytes() const override {
    return static_cast<int64_t>(expansion_.columns.size() * sizeof(int32_t) +
                                expansion_.coefficients.size() * sizeof(T));
  }
  int64_t multiplications() const override {
    return static_cast<int64_t>(expansion_.columns.size());
  }

 private:
  const ExpansionFeatures<T> expansion_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_EXPANSION_RUNNER_H_
