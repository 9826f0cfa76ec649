// The answers of ModelStreamInfer, in which a request's error is a message and not the stream's
// end.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_STREAM_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_STREAM_H_

#include "absl/status/status.h"
#include "inference/inference_service.pb.h"

namespace phimap {

// Marks the answer in `response`, which ModelInfer would give, as the only one of its request.
void MarkAsStreamAnswer(inference::ModelStreamInferResponse& response);

// The answer to a request that failed. Clients match it to the request by its id and otherwise read
// only the message, which therefore begins with the reason: "COLUMNS_MISMATCH: inputs[x]…". Text
// copied from the request is cut if it is long, so that the answer is small.
// REQUIRES: `error` is not OK. Pure.
inference::ModelStreamInferResponse StreamErrorOf(const absl::Status& error,
                                                  const inference::ModelInferRequest& request);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_STREAM_H_
