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
  if (order_.empty()) return {};
  const int sharing = std::max<int>(1, workers / static_cast<int>(order_.size()));
  const Engine* const engine = order_.front();
  const auto found = queues_.find(engine);
  Queue& queue = found->second;
  std::vector<int64_t> rows;
  // A request has at least one row, so no more requests than this can join the batch.
  const int64_t max_rows = MaxRowsOfTake(queue.rows, sharing);
  for (size_t i = 0; i < queue.works.size() && static_cast<int64_t>(i) <= max_rows; ++i) {
    rows.push_back(queue.works[i].RowsLeft());
  }
  const int64_t count = RequestsInBatch(rows, max_rows);
  std::vector<QueuedWork> taken;
  taken.reserve(static_cast<size_t>(count));
  const bool is_emptied = count == static_cast<int64_t>(queue.works.size());
  // The last step that may find no memory. Nothing has changed if it does.
  if (!is_emptied) order_.push_back(engine);
  order_.pop_front();
  batches_ -= queue.Batches();
  for (int64_t left = count; left > 0; --left) {
    queue.rows -= queue.works.front().RowsLeft();
    taken.push_back(std::move(queue.works.front()));
    queue.works.pop_front();
  }
  batches_ += queue.Batches();
  if (is_emptied) queues_.erase(found);
  return taken;
}

}  // namespace phimap
