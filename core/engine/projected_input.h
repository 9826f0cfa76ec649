// The input stage x' = Pᵀ·((x − c) ∘ s).
#ifndef PHIMAP_CORE_ENGINE_PROJECTED_INPUT_H_
#define PHIMAP_CORE_ENGINE_PROJECTED_INPUT_H_

#include "core/engine/input_runner.h"
#include "core/engine/shift_and_scale.h"
#include "core/linalg/panel_product.h"
#include "core/plan/plan.h"

namespace phimap {

// Holds P, packed in float64. The output is dense.
template <typename T>
class ProjectedInput final : public InputRunner<T> {
 public:
  // REQUIRES: `stage` has a projection.
  ProjectedInput(const EngineInput& input, const InputStage& stage);

  TileRows<T> Run(absl::Span<const RowPlace> tile, EngineScratch& scratch) const override;
  int64_t memory_bytes() const override {
    return projection_.memory_bytes() + scaling_.memory_bytes();
  }
  int64_t multiplications() const override { return projection_.multiplications(); }

 private:
  struct Memory;

  void ProjectDense(absl::Span<const RowPlace> tile, Memory& memory) const;
  void ProjectSparse(absl::Span<const RowPlace> tile, Memory& memory) const;

  const ShiftAndScale scaling_;
  const PanelMatrix<double> projection_;
  const int64_t stride_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_PROJECTED_INPUT_H_
