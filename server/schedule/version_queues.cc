#include "server/schedule/version_queues.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/status/check.h"
#include "server/schedule/batch_policy.h"

namespace phimap {

int64_t VersionQueues::Queue::Batches() const {
  return WorthwhileBatches(static_cast<int64_t>(works.size()), rows);
}

void VersionQueues::Push(QueuedWork&& work) {
  const Engine* const engine = work.work.engine.get();
  const int64_t rows = work.RowsLeft();
  const auto [found, fresh] = queues_.try_emplace(engine);
  Queue& queue = found->second;
  const int64_t before = queue.Batches();
  try {
    if (fresh) order_.push_back(engine);
    queue.works.push_back(std::move(work));
  } catch (const std::bad_alloc&) {
    if (fresh) {
      std::erase(order_, engine);
      queues_.erase(found);
    }
    throw;
  }
  queue.rows += rows;
  batches_ += queue.Batches() - before;
}

std::vector<QueuedWork> VersionQueues::Take(int workers) {
  PHIMAP_CHECK(workers > 0);
  std::vector<QueuedWork> taken;
  if (order_.empty()) return taken;
  const int sharing = std::max<int>(1, workers / static_cast<int>(order_.size()));
  const Engine* const engine = order_.front();
  order_.pop_front();
  Queue& queue = queues_[engine];
  std::vector<int64_t> rows;
  // A request has at least one row, so no more requests than this can join the batch.
  const int64_t max_rows = MaxRowsOfTake(queue.rows, sharing);
  for (size_t i = 0; i < queue.works.size() && static_cast<int64_t>(i) <= max_rows; ++i) {
    rows.push_back(queue.works[i].RowsLeft());
  }
  batches_ -= queue.Batches();
  for (int64_t left = RequestsInBatch(rows, max_rows); left > 0; --left) {
    queue.rows -= queue.works.front().RowsLeft();
    taken.push_back(std::move(queue.works.front()));
    queue.works.pop_front();
  }
  batches_ += queue.Batches();
  if (queue.works.empty()) {
    queues_.erase(engine);
  } else {
    order_.push_back(engine);
  }
  return taken;
}

}  // namespace phimap
