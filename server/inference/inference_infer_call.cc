#include "server/inference/inference_infer_call.h"

#include <algorithm>

#include "core/status/status_macros.h"
#include "server/inference/inference_input.h"
#include "server/inference/inference_model.h"

namespace phimap {

absl::StatusOr<InferenceInferCall::Wanted> InferenceInferCall::Read() {
  PHIMAP_RETURN_IF_ERROR(answer_.Read(request()));
  return Wanted{answer_.reference(), answer_.rows(), kInputField,
                std::min(deadline(), started() + answer_.timeout()), answer_.extra_row_bytes()};
}

absl::Status InferenceInferCall::ReferenceError(const absl::Status& status) const {
  return InModelFields(status, kModelOfInfer);
}

absl::Status InferenceInferCall::Accept(const VersionHandle& version, const ExamplesView&) {
  return answer_.Accept(version, InferenceAnswer::Message::kInfer);
}

}  // namespace phimap
