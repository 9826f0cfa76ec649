// The backend that runs plans on the vector unit of this machine.
#ifndef PHIMAP_CORE_ENGINE_PANEL_BACKEND_H_
#define PHIMAP_CORE_ENGINE_PANEL_BACKEND_H_

#include "core/engine/engine_loader.h"

namespace phimap {

// Packs a plan's matrices into panels for the vector unit at hand, and chooses a runner for each
// stage.
class PanelBackend final : public EngineBackend {
 public:
  absl::string_view name() const override { return "panels"; }
  bool RunsArithmetic(uint32_t arithmetic) const override { return arithmetic == kArithmetic; }
  // Returns RESOURCE_EXHAUSTED if the dense form of a sparse projection takes over 1 GiB, and
  // FAILED_PRECONDITION if the squared norm of a landmark overflows the serving type.
  absl::StatusOr<std::unique_ptr<const Engine>> Load(const Plan& plan) const override;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_ENGINE_PANEL_BACKEND_H_
