#include "server/inference/inference_metadata.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/plan/residual.h"
#include "core/status/status_macros.h"
#include "server/inference/inference_model.h"
#include "server/inference/inference_tensor.h"

namespace phimap {
namespace {

// Number of versions read at a time.
constexpr int kPage = 1000;

using Tensor = inference::ModelMetadataResponse::TensorMetadata;

void Describe(const char* name, const char* datatype, int64_t columns, Tensor* tensor) {
  tensor->set_name(name);
  tensor->set_datatype(datatype);
  tensor->add_shape(-1);
  tensor->add_shape(columns);
}

// Lists the version numbers in ascending order. The store returns them in descending order, a page
// at a time.
absl::Status ListNumbers(Store& store, const std::string& mapping,
                         inference::ModelMetadataResponse* response) {
  std::optional<int64_t> before;
  do {
    PHIMAP_ASSIGN_OR_RETURN(const std::vector<VersionRecord> page,
                            store.ListVersions(mapping, before, kPage));
    for (const VersionRecord& record : page) response->add_versions(absl::StrCat(record.number));
    before = page.size() < kPage ? std::nullopt : std::optional<int64_t>(page.back().number);
  } while (before.has_value());
  std::reverse(response->mutable_versions()->begin(), response->mutable_versions()->end());
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadModelMetadata(Store& store, const inference::ModelMetadataRequest& request,
                               inference::ModelMetadataResponse* response) {
  PHIMAP_ASSIGN_OR_RETURN(const VersionRecord found,
                          FindModel(store, request.name(), request.version()));
  response->set_name(found.mapping);
  response->set_platform(kModelPlatform);
  // Versions that map strings have no input here: only phimap's own API carries strings.
  if (found.input_columns > 0) {
    Describe(kInputName, DatatypeOf(FloatType::kFloat32), found.input_columns,
             response->add_inputs());
  }
  const bool single = found.serving_type == FloatTypeName(FloatType::kFloat32);
  Describe(kFeaturesName, DatatypeOf(single ? FloatType::kFloat32 : FloatType::kFloat64),
           found.output_columns, response->add_outputs());
  if (Residual::IsServedBy(found.mapping_text)) {
    Describe(kResidualName, DatatypeOf(FloatType::kFloat64), 1, response->add_outputs());
  }
  return ListNumbers(store, found.mapping, response);
}

}  // namespace phimap
