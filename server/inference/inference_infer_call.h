// One ModelInfer call: receives rows in a tensor, sends features in a tensor.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_INFER_CALL_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_INFER_CALL_H_

#include "inference/inference_service.pb.h"
#include "server/inference/inference_answer.h"
#include "server/serving/row_call.h"

namespace phimap {

class InferenceInferCall final : public RowCall<inference::ModelInferRequest> {
 public:
  InferenceInferCall(const CallStart& start, const RowCallEnvironment& environment)
      : RowCall(start, environment) {}

 private:
  absl::StatusOr<Wanted> Read() override;
  absl::Status ReferenceError(const absl::Status& status) const override;
  absl::Status Accept(const VersionHandle& version, const ExamplesView& rows) override;
  PlannedAnswer& answer() override { return answer_.message(); }
  char* Features() override { return answer_.Features(); }
  void Complete(const ExamplesView& seen) override { answer_.Complete(seen); }

  InferenceAnswer answer_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_INFER_CALL_H_
