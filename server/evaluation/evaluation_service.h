// EvaluationService: see proto/phimap/v1/evaluation_service.proto.
#ifndef PHIMAP_SERVER_EVALUATION_EVALUATION_SERVICE_H_
#define PHIMAP_SERVER_EVALUATION_EVALUATION_SERVICE_H_

#include <atomic>

#include "server/calls/dispatcher.h"
#include "server/evaluation/evaluate_call.h"
#include "server/schedule/job_queue.h"

namespace phimap {

// State that the calls of the service share. The constructor's arguments outlive the service, which
// outlives its calls.
class EvaluationService {
 public:
  struct Environment {
    VersionRegistry& registry;
    Store& store;
    // Budget of all evaluations together.
    MemoryBudget& memory;
    // Time for which a client may keep an evaluation waiting.
    absl::Duration idle_timeout;
    // Called on threads that work for long, between tiles: lets Transforms pass.
    std::function<void()> yield;
  };
  explicit EvaluationService(Environment environment);

  void AddTo(Dispatcher& dispatcher);

 private:
  std::atomic<int> running_{0};
  const EvaluateCallEnvironment environment_;
  // One thread each, at a low priority: rows of all evaluations are mapped in turn, and one learns
  // while the others wait. Last, so that they end first.
  JobQueue ingest_{1};
  JobQueue learning_{1};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_EVALUATION_EVALUATION_SERVICE_H_
