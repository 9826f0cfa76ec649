#include "core/engine/engine_loader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/engine/panel_backend.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {

const EngineLoader& EngineLoader::Default() {
  static const PanelBackend* const panels = new PanelBackend();
  static const EngineLoader* const loader = new EngineLoader({panels});
  return *loader;
}

absl::StatusOr<std::unique_ptr<const Engine>> EngineLoader::Load(const Plan& plan) const {
  const auto backend = std::find_if(
      backends_.begin(), backends_.end(),
      [&](const EngineBackend* candidate) { return candidate->RunsArithmetic(plan.arithmetic); });
  if (backend == backends_.end()) {
    return MakeError(
        absl::StatusCode::kUnimplemented, "ARITHMETIC_UNKNOWN", "",
        absl::StrCat("the version needs arithmetic ", plan.arithmetic,
                     ", but this release of phimap supports only arithmetic ", kArithmetic));
  }
  PHIMAP_RETURN_IF_ERROR(plan.Validate());
  return (*backend)->Load(plan);
}

}  // namespace phimap
