// Features that are a kernel program of string kernels with fixed strings.
#ifndef PHIMAP_CORE_ENGINE_STRING_RUNNER_H_
#define PHIMAP_CORE_ENGINE_STRING_RUNNER_H_

#include "core/engine/feature_runner.h"
#include "core/engine/landmark_kernel.h"
#include "core/engine/string_values.h"
#include "core/plan/plan.h"

namespace phimap {

template <typename T>
class StringRunner final : public FeatureRunner<T> {
 public:
  // Throws std::bad_alloc.
  explicit StringRunner(const StringFeatures& features);

  void Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
           EngineScratch& scratch) const override;

  int64_t features() const override { return kernel_.features(); }
  int64_t memory_bytes() const override { return values_.memory_bytes() + kernel_.memory_bytes(); }
  int64_t multiplications() const override { return 0; }
  double multiplications_per_byte() const override { return values_.multiplications_per_byte(); }
  absl::string_view overflow_cause() const override { return kernel_.overflow_cause(); }
  absl::string_view overflow_remedy() const override {
    return "scale the kernel down, or serve in float64";
  }

 private:
  struct Memory;

  const StringValues<T> values_;
  LandmarkKernel<T> kernel_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_STRING_RUNNER_H_
