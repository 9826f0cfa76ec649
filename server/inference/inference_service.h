// GRPCInferenceService: see proto/inference/inference_service.proto.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_SERVICE_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_SERVICE_H_

#include <atomic>
#include <string>

#include "absl/time/time.h"
#include "server/rpc/dispatcher.h"
#include "server/schedule/task_pool.h"
#include "server/store/store.h"
#include "server/transform/row_call.h"

namespace phimap {

// Objects that the calls of the service share. They must outlive the dispatcher.
struct InferenceEnvironment {
  const RowCallEnvironment& rows;
  Store& store;
  // Runs calls of the store.
  TaskPool& store_pool;
  // A ModelStreamInfer call ends if its client is silent for this long.
  const absl::Duration& stream_idle_limit;
  // Whether the server takes calls, as reported to health checks.
  const std::atomic<bool>& serving;
  // Version of the server.
  std::string version;
};

// Adds the service, which keeps a reference to `environment`.
void AddInferenceService(const InferenceEnvironment& environment, Dispatcher& dispatcher);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_SERVICE_H_
