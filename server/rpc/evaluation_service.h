// EvaluationService: see proto/phimap/v1/evaluation_service.proto.
#ifndef PHIMAP_SERVER_RPC_EVALUATION_SERVICE_H_
#define PHIMAP_SERVER_RPC_EVALUATION_SERVICE_H_

#include <atomic>
#include <functional>

#include "absl/time/time.h"
#include "phimap/v1/evaluation_service.grpc.pb.h"
#include "server/build/job_queue.h"
#include "server/build/memory_budget.h"
#include "server/observe/log.h"
#include "server/registry/version_registry.h"
#include "server/rpc/service_methods.h"
#include "server/store/store.h"

namespace phimap {

// Thread-safe. What it is made from outlives it.
class EvaluationService final : public v1::EvaluationService::CallbackService {
 public:
  struct Environment {
    VersionRegistry& registry;
    Store& store;
    // Shared with builds.
    MemoryBudget& memory;
    // How long a client may be silent.
    absl::Duration idle_timeout;
    // Called on threads that work for long, between tiles: lets Transforms pass.
    std::function<void()> yield;
    const Logger& logger;
  };
  EvaluationService(Environment environment, const AccessControl& access, Metrics& metrics);

 private:
  grpc::ServerBidiReactor<grpc::ByteBuffer, v1::EvaluateResponse>* OpenEvaluate(
      grpc::CallbackServerContext* context);

  const Environment environment_;
  const ServiceMethods methods_;
  const RpcMethod& evaluate_;
  std::atomic<int> running_{0};
  // One thread each, at a low priority: rows of all evaluations are mapped in turn, and one learns
  // while the others wait. Last, so that they end first.
  JobQueue ingest_{1};
  JobQueue learning_{1};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_EVALUATION_SERVICE_H_
