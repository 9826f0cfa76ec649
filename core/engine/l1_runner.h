// Features that are a kernel program of L1 distances to fixed rows. Old plans have this form: their
// programs receive L1 distances in place of products.
#ifndef PHIMAP_CORE_ENGINE_L1_RUNNER_H_
#define PHIMAP_CORE_ENGINE_L1_RUNNER_H_

#include "core/engine/feature_runner.h"
#include "core/engine/landmark_kernel.h"
#include "core/linalg/panel_product.h"
#include "core/plan/plan.h"

namespace phimap {

template <typename T>
class L1Runner final : public FeatureRunner<T> {
 public:
  explicit L1Runner(const L1Features<T>& features)
      : rows_(PanelMatrix<T>::PackTransposed(features.rows.view())),
        kernel_(features.program, features.rows.rows()) {}

  void Run(const TileRows<T>& x, T* const* z, bool* finite, FiniteCheck check,
           EngineScratch& scratch) const override;

  int64_t features() const override { return kernel_.features(); }
  int64_t memory_bytes() const override { return rows_.memory_bytes(); }
  // A step of a distance takes three operations, where a step of a product takes one.
  int64_t multiplications() const override { return 3 * rows_.multiplications(); }

 private:
  const PanelMatrix<T> rows_;
  LandmarkKernel<T> kernel_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_L1_RUNNER_H_
