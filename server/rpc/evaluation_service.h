// EvaluationService: part of the API, not offered yet.
#ifndef PHIMAP_SERVER_RPC_EVALUATION_SERVICE_H_
#define PHIMAP_SERVER_RPC_EVALUATION_SERVICE_H_

#include "phimap/v1/evaluation_service.grpc.pb.h"
#include "server/observe/log.h"
#include "server/rpc/service_methods.h"

namespace phimap {

// Thread-safe. What it is made from outlives it.
class EvaluationService final : public v1::EvaluationService::CallbackService {
 public:
  EvaluationService(const AccessControl& access, Metrics& metrics, const Logger& logger);

  grpc::ServerBidiReactor<v1::EvaluateRequest, v1::EvaluateResponse>* Evaluate(
      grpc::CallbackServerContext* context) override;

 private:
  const Logger& logger_;
  const ServiceMethods methods_;
  const RpcMethod& evaluate_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_EVALUATION_SERVICE_H_
