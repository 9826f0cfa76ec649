// One ModelStreamInfer call: receives rows in tensors and sends features in tensors, in order.
// Several requests may be in progress at once.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_STREAM_CALL_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_STREAM_CALL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "inference/inference_service.pb.h"
#include "server/inference/inference_answer.h"
#include "server/serving/row_stream_call.h"

namespace phimap {

// Each request names its version. A failed request is answered with its error, and the stream
// continues.
class InferenceStreamCall final
    : public RowStreamCall<inference::ModelInferRequest, InferenceAnswer> {
 public:
  InferenceStreamCall(const CallStart& start, const RowCallEnvironment& environment,
                      const absl::Duration& idle_limit)
      : RowStreamCall(start, environment, idle_limit) {}

 private:
  absl::Status Read(Slot& slot) override;
  absl::string_view ReferenceOf(Slot& slot) override { return slot.answer.reference(); }
  absl::Status Accept(Slot& slot) override;
  absl::Status Failed(Slot& slot, const absl::Status& status) override;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_STREAM_CALL_H_
