// The waiting requests: one first-in-first-out queue for each version, served in turn.
//
// A version with a long queue does not delay the others: after each batch its queue goes to the end
// of the line. Not thread-safe; the scheduler guards it.
#ifndef PHIMAP_SERVER_SCHEDULE_VERSION_QUEUES_H_
#define PHIMAP_SERVER_SCHEDULE_VERSION_QUEUES_H_

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "server/schedule/transform_work.h"

namespace phimap {

class VersionQueues {
 public:
  // Throws std::bad_alloc; `work` is then unchanged.
  void Push(QueuedWork&& work);
  // Takes the next batch for one of `workers`: requests of one version, oldest first. If no other
  // version has work for the other workers, the batch is so small that it leaves them their share
  // (batch_policy.h). The result is empty if nothing waits. Throws std::bad_alloc, and
  // changes nothing, if there is no memory for the batch. REQUIRES: workers > 0.
  std::vector<QueuedWork> Take(int workers);
  bool empty() const { return order_.empty(); }
  // Number of workers worth waking (WorthwhileBatches), for all versions together.
  int64_t batches() const { return batches_; }

 private:
  struct Queue {
    std::deque<QueuedWork> works;
    int64_t rows = 0;
    int64_t Batches() const;
  };

  // The queues that are not empty, keyed by the engine of their version.
  std::unordered_map<const Engine*, Queue> queues_;
  int64_t batches_ = 0;
  // The versions in `queues_`, next to be served first.
  std::deque<const Engine*> order_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_VERSION_QUEUES_H_
