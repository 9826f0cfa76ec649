// GRPCInferenceService: see proto/inference/inference_service.proto.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_SERVICE_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_SERVICE_H_

#include <atomic>
#include <string>

#include "absl/time/time.h"
#include "server/calls/dispatcher.h"
#include "server/observe/log.h"
#include "server/schedule/task_pool.h"
#include "server/serving/row_call.h"
#include "server/store/store.h"

namespace phimap {

// Services that the calls use; outlives the dispatcher.
struct InferenceEnvironment {
  const RowCallEnvironment& rows;
  Store& store;
  // Store calls run there.
  TaskPool& store_pool;
  // Time after which a ModelStreamInfer with a silent client is ended.
  const absl::Duration& stream_idle_limit;
  const Logger& logger;
  // Status reported to health checks.
  const std::atomic<bool>& serving;
  // Version of the server.
  std::string version;
};

// Adds the service, which refers to `environment`.
void AddInferenceService(const InferenceEnvironment& environment, Dispatcher& dispatcher);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_SERVICE_H_
