#include "server/inference/inference_parameters.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/inference/inference_tensor.h"

namespace phimap {
namespace {

using inference::InferParameter;

struct Unsupported {
  const char* name;
  const char* why;
};

constexpr char kNoState[] =
    "a model keeps no state between requests and maps each row by itself: omit this parameter";

constexpr Unsupported kOfRequest[] = {
    {"sequence_id", kNoState}, {"sequence_start", kNoState}, {"sequence_end", kNoState}};
constexpr Unsupported kOfInput[] = {
    {"shared_memory_region",
     "shared memory is not supported: send the rows in raw_input_contents or in contents"}};
constexpr Unsupported kOfOutput[] = {
    {"shared_memory_region",
     "shared memory is not supported: the answer has the features in raw_output_contents"},
    {"classification",
     "features are not classes and have no order: omit this parameter, and train a model on the "
     "features"}};

bool AsksForNothing(const InferParameter& parameter) {
  switch (parameter.parameter_choice_case()) {
    case InferParameter::kBoolParam:
      return !parameter.bool_param();
    case InferParameter::kInt64Param:
      return parameter.int64_param() == 0;
    case InferParameter::kUint64Param:
      return parameter.uint64_param() == 0;
    case InferParameter::kDoubleParam:
      return parameter.double_param() == 0;
    case InferParameter::kStringParam:
      return parameter.string_param().empty();
    case InferParameter::PARAMETER_CHOICE_NOT_SET:
      break;
  }
  return true;
}

absl::Status CheckEach(const InferParameters& parameters, absl::Span<const Unsupported> table,
                       const std::string& prefix) {
  if (parameters.empty()) return absl::OkStatus();
  for (const Unsupported& unsupported : table) {
    const auto found = parameters.find(unsupported.name);
    if (found == parameters.end() || AsksForNothing(found->second)) continue;
    return MakeError(absl::StatusCode::kInvalidArgument, "PARAMETER_NOT_SUPPORTED",
                     absl::StrCat(prefix, "parameters[", unsupported.name, "]"), unsupported.why,
                     {{"parameter", unsupported.name}});
  }
  return absl::OkStatus();
}

// Returns the prefix of a field, such as "inputs[x].". An unknown name is not repeated there; the
// prefix then contains the index instead.
std::string PrefixOf(const char* list, int index, const std::string& name) {
  if (name == kInputName || name == kFeaturesName || name == kResidualName) {
    return absl::StrCat(list, "[", name, "].");
  }
  return absl::StrCat(list, "[", index, "].");
}

}  // namespace

absl::Status CheckParameters(const inference::ModelInferRequest& request) {
  PHIMAP_RETURN_IF_ERROR(CheckEach(request.parameters(), kOfRequest, ""));
  for (int i = 0; i < request.inputs_size(); ++i) {
    PHIMAP_RETURN_IF_ERROR(CheckEach(request.inputs(i).parameters(), kOfInput,
                                     PrefixOf("inputs", i, request.inputs(i).name())));
  }
  for (int i = 0; i < request.outputs_size(); ++i) {
    PHIMAP_RETURN_IF_ERROR(CheckEach(request.outputs(i).parameters(), kOfOutput,
                                     PrefixOf("outputs", i, request.outputs(i).name())));
  }
  return absl::OkStatus();
}

}  // namespace phimap
