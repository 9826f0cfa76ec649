// EvaluationService: see proto/phimap/v1/evaluation_service.proto.
#ifndef PHIMAP_SERVER_EVALUATION_EVALUATION_SERVICE_H_
#define PHIMAP_SERVER_EVALUATION_EVALUATION_SERVICE_H_

#include <atomic>

#include "server/calls/dispatcher.h"
#include "server/evaluation/evaluate_call.h"
#include "server/schedule/job_queue.h"

namespace phimap {

// State that the calls of the service share. The constructor's arguments must outlive the service,
// and the service must outlive its calls.
class EvaluationService {
 public:
  struct Environment {
    VersionRegistry& registry;
    Store& store;
    // Budget of all evaluations together.
    MemoryBudget& memory;
    // How long a client may keep an evaluation waiting.
    absl::Duration idle_timeout;
    // Yields to Transforms. Called between tiles, on threads that work for long.
    std::function<void()> yield;
  };
  explicit EvaluationService(Environment environment);

  void AddTo(Dispatcher& dispatcher);

 private:
  std::atomic<int> running_{0};
  const EvaluateCallEnvironment environment_;
  // Each has one thread of low priority. Rows of all evaluations are mapped one block at a time,
  // and one evaluation learns while the others wait. Declared last, so that the threads end first.
  JobQueue ingest_{1};
  JobQueue learning_{1};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_EVALUATION_EVALUATION_SERVICE_H_
