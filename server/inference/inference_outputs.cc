#include "server/inference/inference_outputs.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "server/inference/inference_tensor.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

absl::Status UnknownOutput(int index, const std::string& name) {
  return MakeError(Code::kInvalidArgument, "OUTPUT_UNKNOWN",
                   absl::StrCat("outputs[", index, "].name"),
                   absl::StrCat("there is no output ", Quoted(name),
                                "; the outputs are \"features\" and, for f2, \"residual\""),
                   {{"expected", kFeaturesName}, {"actual", Excerpt(name)}});
}

absl::Status TwiceTheSame(int index, int before, const std::string& name) {
  return MakeError(
      Code::kInvalidArgument, "OUTPUT_DUPLICATED", absl::StrCat("outputs[", index, "].name"),
      absl::StrCat("output ", Quoted(name), " is already requested in outputs[", before, "]"),
      {{"output", name}});
}

}  // namespace

absl::StatusOr<std::vector<InferenceOutput>> OutputsOf(
    const inference::ModelInferRequest& request) {
  std::vector<InferenceOutput> outputs;
  for (int i = 0; i < request.outputs_size(); ++i) {
    const std::string& name = request.outputs(i).name();
    if (name != kFeaturesName && name != kResidualName) return UnknownOutput(i, name);
    const InferenceOutput output =
        name == kFeaturesName ? InferenceOutput::kFeatures : InferenceOutput::kResidual;
    const auto before = std::find(outputs.begin(), outputs.end(), output);
    if (before != outputs.end()) {
      return TwiceTheSame(i, static_cast<int>(before - outputs.begin()), name);
    }
    outputs.push_back(output);
  }
  if (outputs.empty()) outputs.push_back(InferenceOutput::kFeatures);
  return outputs;
}

}  // namespace phimap
