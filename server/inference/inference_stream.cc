#include "server/inference/inference_stream.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "server/calls/status_trailers.h"
#include "server/inference/inference_tensor.h"

namespace phimap {
namespace {

// Parameter that marks the last answer to a request, for clients that do not know how many answers
// each request gets.
constexpr char kFinal[] = "triton_final_response";

std::string ReasonOf(const absl::Status& error) {
  const std::optional<ErrorDetail> detail = DetailOf(error);
  if (detail.has_value() && !detail->reason.empty()) return detail->reason;
  return absl::StatusCodeToString(error.code());
}

}  // namespace

void MarkAsStreamAnswer(inference::ModelStreamInferResponse& response) {
  (*response.mutable_infer_response()->mutable_parameters())[kFinal].set_bool_param(true);
}

inference::ModelStreamInferResponse StreamErrorOf(const absl::Status& error,
                                                  const inference::ModelInferRequest& request) {
  PHIMAP_CHECK(!error.ok());
  inference::ModelStreamInferResponse response;
  response.set_error_message(absl::StrCat(ReasonOf(error), ": ", DetailsForClient(error).message));
  inference::ModelInferResponse& answer = *response.mutable_infer_response();
  answer.set_id(Shortened(request.id(), kMaxIdBytes));
  answer.set_model_name(Shortened(request.model_name(), kMaxIdBytes));
  answer.set_model_version(Shortened(request.model_version(), kMaxIdBytes));
  MarkAsStreamAnswer(response);
  return response;
}

}  // namespace phimap
