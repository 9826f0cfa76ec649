// GRPCInferenceService: see proto/inference/inference_service.proto.
#ifndef PHIMAP_SERVER_RPC_INFERENCE_SERVICE_H_
#define PHIMAP_SERVER_RPC_INFERENCE_SERVICE_H_

#include <atomic>
#include <string>

#include "inference/inference_service.grpc.pb.h"
#include "server/rpc/service_methods.h"
#include "server/rpc/transform_path.h"
#include "server/schedule/task_pool.h"
#include "server/store/store.h"

namespace phimap {

// Thread-safe. What it is made from outlives it.
class InferenceService final : public inference::GRPCInferenceService::CallbackService {
 public:
  // `serving` is what health checks are told, `version` that of the server. Store calls run on
  // `store_pool`.
  InferenceService(const TransformEnvironment& environment, Store& store, TaskPool& store_pool,
                   const std::atomic<bool>& serving, std::string version,
                   const AccessControl& access, Metrics& metrics);

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;

  Unary* ServerLive(Context* context, const inference::ServerLiveRequest* request,
                    inference::ServerLiveResponse* response) override;
  Unary* ServerReady(Context* context, const inference::ServerReadyRequest* request,
                     inference::ServerReadyResponse* response) override;
  Unary* ModelReady(Context* context, const inference::ModelReadyRequest* request,
                    inference::ModelReadyResponse* response) override;
  Unary* ServerMetadata(Context* context, const inference::ServerMetadataRequest* request,
                        inference::ServerMetadataResponse* response) override;
  Unary* ModelMetadata(Context* context, const inference::ModelMetadataRequest* request,
                       inference::ModelMetadataResponse* response) override;
  Unary* ModelInfer(Context* context, const inference::ModelInferRequest* request,
                    inference::ModelInferResponse* response) override;

 private:
  // The answer is complete.
  Unary* Answered(Context* context, const char* method);

  const TransformEnvironment& environment_;
  Store& store_;
  TaskPool& store_pool_;
  const std::atomic<bool>& serving_;
  const std::string version_;
  const ServiceMethods methods_;
  const RpcMethod& infer_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_INFERENCE_SERVICE_H_
