// One ModelInfer: rows in a tensor, features in a tensor.
#ifndef PHIMAP_SERVER_RPC_INFERENCE_INFER_CALL_H_
#define PHIMAP_SERVER_RPC_INFERENCE_INFER_CALL_H_

#include <string>
#include <vector>

#include "inference/inference_service.pb.h"
#include "server/rpc/inference_outputs.h"
#include "server/rpc/transform_unary_call.h"

namespace phimap {

class InferenceInferCall final : public TransformUnaryCall {
 public:
  InferenceInferCall(const TransformEnvironment& environment, const RpcMethod& method,
                     const grpc::CallbackServerContext& context,
                     const inference::ModelInferRequest& request,
                     inference::ModelInferResponse* response);

 private:
  absl::StatusOr<Wanted> Read() override;
  absl::Status ReferenceError(const absl::Status& status) const override;
  absl::Status Accept(const VersionHandle& version, const ExamplesView& rows) override;
  char* Allocate(const Engine& engine, int64_t rows) override;
  void Complete(const ExamplesView& rows) override;
  bool Wants(InferenceOutput output) const;

  const inference::ModelInferRequest& request_;
  inference::ModelInferResponse* const response_;
  std::string reference_;
  std::vector<InferenceOutput> outputs_;
  const Residual* residual_ = nullptr;  // the version's, if it is asked for
  std::string hidden_features_;         // those that are not asked for beside the residual
  const char* features_ = nullptr;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_INFERENCE_INFER_CALL_H_
