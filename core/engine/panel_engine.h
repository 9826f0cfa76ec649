// The engine that runs on the vector unit of this machine: an input stage, a feature stage and a
// projection stage, put together.
#ifndef PHIMAP_CORE_ENGINE_PANEL_ENGINE_H_
#define PHIMAP_CORE_ENGINE_PANEL_ENGINE_H_

#include <cstdint>
#include <memory>

#include "core/engine/engine.h"
#include "core/engine/feature_runner.h"
#include "core/engine/input_runner.h"
#include "core/engine/projection_runner.h"
#include "core/engine/tile.h"

namespace phimap {

// The stages of a plan, packed into panels.
template <typename T>
struct PanelStages {
  std::unique_ptr<const InputRunner<T>> input;
  std::unique_ptr<const FeatureRunner<T>> features;
  ProjectionRunner<T> projection;
  int64_t output_columns = 0;
};

// Cuts batches into tiles, and runs the stages on each, with one virtual call per stage and tile.
template <typename T>
class PanelEngine final : public Engine {
 public:
  explicit PanelEngine(PanelStages<T> stages);

  int64_t memory_bytes() const override;
  int64_t multiplications_per_row() const override;
  double Multiplications(const ExamplesView& rows) const override;
  void Transform(absl::Span<TransformPart> parts, EngineScratch& scratch) const override;

 private:
  struct Memory;

  void TransformTile(absl::Span<const RowPlace> tile, Memory& memory, EngineScratch& scratch) const;
  absl::Status Overflow(int64_t row) const;

  const PanelStages<T> stages_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_PANEL_ENGINE_H_
