// LearningService: see proto/phimap/v1/learning_service.proto.
#ifndef PHIMAP_SERVER_LEARNING_LEARNING_SERVICE_H_
#define PHIMAP_SERVER_LEARNING_LEARNING_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/time/time.h"
#include "server/admission/memory_budget.h"
#include "server/build/build_manager.h"
#include "server/registry/version_registry.h"
#include "server/rpc/dispatcher.h"
#include "server/schedule/job_queue.h"
#include "server/store/store.h"

namespace phimap {

// Maximum number of concurrent evaluations. Each may hold rows in memory.
inline constexpr int kMaxEvaluations = 16;
// Minimum rate at which rows must arrive, averaged over the idle timeout. There is a minimum
// because rows are held in memory until the last one has arrived.
inline constexpr int64_t kSlowestBytesPerSecond = int64_t{64} << 10;

// Objects that the evaluation calls share. They must outlive the calls.
struct EvaluateCallEnvironment {
  VersionRegistry& registry;
  Store& store;
  // Budget of all evaluations together.
  MemoryBudget& memory;
  // Queues of the threads that map rows and of those that learn.
  JobQueue& ingest;
  JobQueue& learning;
  // Number of evaluations in progress.
  std::atomic<int>& running;
  // How long a client may keep an evaluation waiting.
  absl::Duration idle_timeout;
  // Yields to Transforms. Called between tiles, on the threads that map rows and on those that
  // learn.
  std::function<void()> yield;
};

// State that the calls of the service share. The constructor's arguments must outlive the service,
// and the service must outlive its calls.
class LearningService {
 public:
  struct Environment {
    // A training is a build.
    BuildManager& builds;
    VersionRegistry& registry;
    Store& store;
    // Budget of all evaluations together.
    MemoryBudget& memory;
    // How long a client may keep an evaluation waiting.
    absl::Duration idle_timeout;
    // Yields to Transforms. Called between tiles, on threads that work for long.
    std::function<void()> yield;
  };
  explicit LearningService(Environment environment);

  void AddTo(Dispatcher& dispatcher);

 private:
  BuildManager& builds_;
  std::atomic<int> running_{0};
  const EvaluateCallEnvironment environment_;
  // Each has one thread of low priority. Rows of all evaluations are mapped one block at a time,
  // and one evaluation learns while the others wait. Declared last, so that the threads end first.
  JobQueue ingest_{1};
  JobQueue learning_{1};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_LEARNING_LEARNING_SERVICE_H_
