#include "core/engine/engine.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/linalg/panel_product.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {

absl::StatusOr<std::unique_ptr<const Engine>> Engine::Load(const Plan& plan) {
  return EngineLoader::Default().Load(plan);
}

absl::Status Engine::CheckTakes(const ExamplesView& examples) const {
  if (!takes_strings()) return CheckShape(examples, input_columns(), is_remote());
  const StringsView* strings = examples.strings();
  if (strings != nullptr && (takes_bytes() || strings->kind == ExampleKind::kText)) {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kExampleKindMismatch,
                   absl::StrCat("examples.", examples.kind_name()),
                   absl::StrCat("the version maps ", takes_bytes() ? "bytes or text" : "text",
                                ", got ", examples.kind_name()),
                   {{"actual", std::string(examples.kind_name())}});
}

const EngineLoader& EngineLoader::Default() {
  static const EngineLoader* const loader = new EngineLoader({&PanelBackend()});
  return *loader;
}

absl::StatusOr<std::unique_ptr<const Engine>> EngineLoader::Load(const Plan& plan) const {
  const auto backend = std::find_if(
      backends_.begin(), backends_.end(),
      [&](const EngineBackend* candidate) { return candidate->RunsArithmetic(plan.arithmetic); });
  if (backend == backends_.end()) {
    return MakeError(
        absl::StatusCode::kUnimplemented, reason::kArithmeticUnknown, "",
        absl::StrCat("the version needs arithmetic ", plan.arithmetic,
                     ", but this release of phimap supports only arithmetic ", kArithmetic));
  }
  PHIMAP_RETURN_IF_ERROR(plan.Validate());
  return (*backend)->Load(plan);
}

const char* EngineTargetName() { return VectorTargetName(); }

}  // namespace phimap
