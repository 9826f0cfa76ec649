#include "server/schedule/version_queues.h"

#include <utility>

#include "server/schedule/batch_policy.h"

namespace phimap {

void VersionQueues::Push(QueuedWork work) {
  const Engine* const engine = work.work.engine.get();
  std::deque<QueuedWork>& queue = queues_[engine];
  if (queue.empty()) turn_.push_back(engine);
  queue.push_back(std::move(work));
}

std::vector<QueuedWork> VersionQueues::Take() {
  std::vector<QueuedWork> taken;
  if (turn_.empty()) return taken;
  const Engine* const engine = turn_.front();
  turn_.pop_front();
  std::deque<QueuedWork>& queue = queues_[engine];
  std::vector<int64_t> rows;
  // A request has a row at least, so no more than this can join.
  for (size_t i = 0; i < queue.size() && i <= take_rows_; ++i) {
    rows.push_back(queue[i].work.rows.rows);
  }
  for (int64_t left = RequestsToTake(rows, take_rows_); left > 0; --left) {
    taken.push_back(std::move(queue.front()));
    queue.pop_front();
  }
  if (queue.empty()) {
    queues_.erase(engine);
  } else {
    turn_.push_back(engine);
  }
  return taken;
}

}  // namespace phimap
