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
  // `take_rows` is RequestsToTake's.
  explicit VersionQueues(int64_t take_rows) : take_rows_(take_rows) {}

  void Push(QueuedWork work);
  // What the next free worker computes: all of one version, oldest first. Empty when nothing waits.
  std::vector<QueuedWork> Take();
  bool empty() const { return turn_.empty(); }

 private:
  const int64_t take_rows_;
  // Queues that are not empty, by the engine of their version.
  std::unordered_map<const Engine*, std::deque<QueuedWork>> queues_;
  // The same versions, next to be served first.
  std::deque<const Engine*> turn_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_VERSION_QUEUES_H_
