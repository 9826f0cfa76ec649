#include "server/rpc/inference_outputs.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/rpc/inference_tensor.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

absl::Status UnknownOutput(int index, const std::string& name) {
  return MakeError(Code::kInvalidArgument, "UNKNOWN_OUTPUT",
                   absl::StrCat("outputs[", index, "].name"),
                   absl::StrCat("there is no output ", Quoted(name), "; there is \"features\""),
                   {{"expected", kFeaturesName}, {"actual", Excerpt(name)}});
}

absl::Status TwiceTheSame(int index, const std::string& name) {
  return MakeError(Code::kInvalidArgument, "DUPLICATE_OUTPUT",
                   absl::StrCat("outputs[", index, "].name"),
                   absl::StrCat("output ", Quoted(name), " is asked for in outputs[0] already"),
                   {{"output", name}});
}

absl::Status NoResidual() {
  return MakeError(Code::kUnimplemented, "OUTPUT_NOT_OFFERED", "outputs[residual]",
                   "the residual of a row is part of the API and not offered by this server",
                   {{"output", kResidualName}});
}

}  // namespace

absl::Status CheckOutputs(const inference::ModelInferRequest& request) {
  for (int i = 0; i < request.outputs_size(); ++i) {
    const std::string& name = request.outputs(i).name();
    if (name == kResidualName) return NoResidual();
    if (name != kFeaturesName) return UnknownOutput(i, name);
    // There is one output that may be asked for: a second entry repeats the first.
    if (i > 0) return TwiceTheSame(i, name);
    PHIMAP_RETURN_IF_ERROR(CheckKnown(request.outputs(i).parameters(), /*known=*/"",
                                      absl::StrCat("outputs[", name, "].parameters")));
  }
  return absl::OkStatus();
}

}  // namespace phimap
