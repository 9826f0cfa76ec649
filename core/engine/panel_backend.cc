#include "core/engine/panel_backend.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/engine/block_product_runner.h"
#include "core/engine/expansion_runner.h"
#include "core/engine/l1_runner.h"
#include "core/engine/number_input.h"
#include "core/engine/panel_engine.h"
#include "core/engine/product_runner.h"
#include "core/engine/projected_input.h"
#include "core/engine/remote_runner.h"
#include "core/engine/string_input.h"
#include "core/engine/string_runner.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// One overload for each kind of feature stage.
template <typename T>
struct LoadFeatures {
  using Runner = absl::StatusOr<std::unique_ptr<const FeatureRunner<T>>>;

  Runner operator()(const ProductFeatures<T>& features) const {
    PHIMAP_ASSIGN_OR_RETURN(PackedLandmarks<T> landmarks, PackedLandmarks<T>::Pack(features));
    if (BlockProductRunner<T>::Runs(features.program)) {
      return std::make_unique<const BlockProductRunner<T>>(std::move(landmarks));
    }
    return std::make_unique<const ProductRunner<T>>(std::move(landmarks));
  }
  Runner operator()(const L1Features<T>& features) const {
    return std::make_unique<const L1Runner<T>>(features);
  }
  Runner operator()(const RemoteFeatures& features) const {
    return std::make_unique<const RemoteRunner<T>>(static_cast<int64_t>(features.examples.size()));
  }
  Runner operator()(const ExpansionFeatures<T>& features) const {
    return std::make_unique<const ExpansionRunner<T>>(features);
  }
  Runner operator()(const StringFeatures& features) const {
    return std::make_unique<const StringRunner<T>>(features);
  }
};

// Whether a program takes bytes as well as texts.
bool TakesBytes(const KernelProgram& program) {
  return std::all_of(program.strings().begin(), program.strings().end(),
                     [](const StringKernel& kernel) { return kernel.unit == StringUnit::kByte; });
}

template <typename T>
std::unique_ptr<const InputRunner<T>> LoadInput(const InputStage& stage,
                                                const ServingStages<T>& stages,
                                                const FeatureRunner<T>& features) {
  if (const auto* strings = std::get_if<StringFeatures>(&stages.features)) {
    return std::make_unique<const StringInput<T>>(
        EngineInput{.strings = true, .bytes = TakesBytes(strings->program)});
  }
  const bool remote = std::holds_alternative<RemoteFeatures>(stages.features);
  const EngineInput input{.columns = remote ? features.features() : stage.columns,
                          .remote = remote};
  if (!stage.projection.empty()) return std::make_unique<const ProjectedInput<T>>(input, stage);
  const bool stays_sparse = stage.shift.empty() && features.takes_sparse();
  return std::make_unique<const NumberInput<T>>(input, stage, stays_sparse);
}

template <typename T>
absl::StatusOr<std::unique_ptr<const Engine>> LoadEngine(const InputStage& input,
                                                         const ServingStages<T>& stages) {
  PanelStages<T> packed;
  PHIMAP_ASSIGN_OR_RETURN(packed.features, std::visit(LoadFeatures<T>{}, stages.features));
  packed.input = LoadInput(input, stages, *packed.features);
  PHIMAP_ASSIGN_OR_RETURN(packed.projection, ProjectionRunner<T>::Load(stages));
  packed.output_columns = stages.output_columns();
  return std::make_unique<const PanelEngine<T>>(std::move(packed));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Engine>> PanelBackend::Load(const Plan& plan) const {
  return std::visit([&](const auto& stages) { return LoadEngine(plan.input, stages); },
                    plan.stages);
}

}  // namespace phimap
