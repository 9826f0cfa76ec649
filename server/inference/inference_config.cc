#include "server/inference/inference_config.h"

#include "core/plan/residual.h"
#include "core/plan/rows.h"
#include "core/status/status_macros.h"
#include "server/inference/inference_model.h"
#include "server/inference/inference_tensor.h"
#include "server/transform/limits.h"

namespace phimap {
namespace {

// Value of `backend` in the public configuration.
constexpr char kBackend[] = "phimap";

inference::DataType TypeOf(const VersionRecord& version) {
  const bool single = version.serving_type == FloatTypeName(FloatType::kFloat32);
  return single ? inference::TYPE_FP32 : inference::TYPE_FP64;
}

void AddOutput(const char* name, inference::DataType type, int64_t columns,
               inference::ModelConfig& config) {
  inference::ModelOutput& output = *config.add_output();
  output.set_name(name);
  output.set_data_type(type);
  output.add_dims(columns);
}

void AddTensors(const VersionRecord& version, inference::ModelConfig& config) {
  // Versions that map strings have no input here: only phimap's own API carries strings.
  if (version.input_columns > 0) {
    inference::ModelInput& input = *config.add_input();
    input.set_name(kInputName);
    input.set_data_type(inference::TYPE_FP32);
    input.add_dims(version.input_columns);
  }
  AddOutput(kFeaturesName, TypeOf(version), version.output_columns, config);
  if (Residual::IsServedBy(version.mapping_text)) {
    AddOutput(kResidualName, inference::TYPE_FP64, 1, config);
  }
}

}  // namespace

inference::ModelConfig ModelConfigOf(const VersionRecord& version) {
  inference::ModelConfig config;
  config.set_name(version.mapping);
  config.set_platform(kModelPlatform);
  config.set_backend(kBackend);
  config.mutable_version_policy()->mutable_all();
  config.set_max_batch_size(static_cast<int32_t>(kMaxRowsPerMessage));
  AddTensors(version, config);
  inference::ModelInstanceGroup& group = *config.add_instance_group();
  group.set_name(version.mapping);
  group.set_kind(inference::ModelInstanceGroup::KIND_CPU);
  group.set_count(1);
  config.mutable_dynamic_batching();
  config.mutable_model_transaction_policy();
  auto& parameters = *config.mutable_parameters();
  parameters["digest"].set_string_value(version.digest);
  parameters["mapping"].set_string_value(version.mapping_text);
  parameters["kernel"].set_string_value(version.kernel_text);
  parameters["serving_type"].set_string_value(version.serving_type);
  return config;
}

absl::Status ReadModelConfig(Store& store, const inference::ModelConfigRequest& request,
                             inference::ModelConfigResponse* response) {
  PHIMAP_ASSIGN_OR_RETURN(const VersionRecord found,
                          FindModel(store, request.name(), request.version()));
  *response->mutable_config() = ModelConfigOf(found);
  return absl::OkStatus();
}

}  // namespace phimap
