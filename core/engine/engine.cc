#include "core/engine/engine.h"

#include "absl/strings/str_cat.h"
#include "core/engine/engine_loader.h"
#include "core/linalg/panel_product.h"
#include "core/status/error.h"

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
  return MakeError(absl::StatusCode::kInvalidArgument, "EXAMPLE_KIND_MISMATCH",
                   absl::StrCat("examples.", examples.kind_name()),
                   absl::StrCat("the version maps ", takes_bytes() ? "bytes or text" : "text",
                                ", got ", examples.kind_name()),
                   {{"actual", std::string(examples.kind_name())}});
}

const char* EngineTargetName() { return VectorTargetName(); }

}  // namespace phimap
