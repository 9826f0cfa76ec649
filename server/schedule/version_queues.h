// The requests that wait: one first-in-first-out queue for each version, served in turn.
//
// A version with a long queue does not hold up the others: after each take its queue goes to the
// end of the line. Not thread-safe; the scheduler guards it.
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
  void Push(QueuedWork work);
  // What the next of `workers` computes: all of one version, oldest first, and so much that the
  // others find their share of it, unless they have other versions (batch_policy.h). Empty when
  // nothing waits. REQUIRES: workers > 0.
  std::vector<QueuedWork> Take(int workers);
  bool empty() const { return turn_.empty(); }
  // How many workers are worth waking (WorthwhileTakes), of all versions.
  int64_t takes() const { return takes_; }

 private:
  struct Queue {
    std::deque<QueuedWork> works;
    int64_t rows = 0;
    int64_t Takes() const;
  };

  // Queues that are not empty, by the engine of their version.
  std::unordered_map<const Engine*, Queue> queues_;
  int64_t takes_ = 0;
  // The same versions, next to be served first.
  std::deque<const Engine*> turn_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_VERSION_QUEUES_H_
