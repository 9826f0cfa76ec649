// The answers of ModelStreamInfer. A request's error is an answer, and does not end the stream.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_STREAM_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_STREAM_H_

#include "absl/status/status.h"
#include "inference/inference_service.pb.h"

namespace phimap {

// Marks the ModelInfer answer in `response` as the only one of its request.
void MarkAsStreamAnswer(inference::ModelStreamInferResponse& response);

// Returns the answer to a failed request. Clients match it to the request by its id, and otherwise
// read only the message. So the message begins with the reason: "COLUMNS_MISMATCH: inputs[x]…".
// Long text copied from the request is truncated, to keep the answer small. REQUIRES: `error` is
// not OK. Pure.
inference::ModelStreamInferResponse StreamErrorOf(const absl::Status& error,
                                                  const inference::ModelInferRequest& request);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_STREAM_H_
