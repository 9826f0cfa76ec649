#include "server/serving/stage.h"

#include <optional>
#include <utility>

#include "server/schedule/batch_policy.h"

namespace phimap {
namespace {

thread_local Stage* this_thread_stage = nullptr;

// Maximum work in the stage, in quanta of the loop. Further work goes to the pool, because the loop
// must return to its sockets.
constexpr int kMaxQuanta = 4;

// Whether the work was moved into a batch. Its place in the list stays, empty.
bool Gone(const QueuedWork& queued) { return queued.work.engine == nullptr; }

int64_t Rows(const std::vector<QueuedWork>& batch) {
  int64_t rows = 0;
  for (const QueuedWork& queued : batch) rows += queued.RowsLeft();
  return rows;
}

}  // namespace

Stage* Stage::OfThisThread() { return this_thread_stage; }

void Stage::Attach() { this_thread_stage = this; }

bool Stage::Take(TransformWork& work) {
  const absl::Duration alone = scheduler_.Estimate(work);
  if (alone > kLoopQuantum || expected_ + alone > kMaxQuanta * kLoopQuantum) return false;
  std::optional<QueuedWork> queued = scheduler_.Accept(std::move(work));
  if (queued.has_value()) {
    expected_ += alone;
    staged_.push_back(*std::move(queued));
  }
  return true;
}

std::vector<QueuedWork> Stage::NextBatch(std::vector<QueuedWork>& staged, size_t first) {
  std::vector<QueuedWork> batch;
  const Engine* const engine = staged[first].work.engine.get();
  int64_t rows = 0;
  for (size_t i = first; i < staged.size(); ++i) {
    if (staged[i].work.engine.get() != engine) continue;
    if (!batch.empty() && rows + staged[i].RowsLeft() > kBatchRows) break;
    rows += staged[i].RowsLeft();
    batch.push_back(std::move(staged[i]));
    staged[i].work.engine = nullptr;
  }
  return batch;
}

absl::Duration Stage::Expected(const std::vector<QueuedWork>& batch) const {
  absl::Duration expected;
  for (const QueuedWork& queued : batch) expected += scheduler_.Estimate(queued.work);
  return expected;
}

void Stage::RunBatch(std::vector<QueuedWork> batch) {
  if (batch.size() > 1 && WorthHalving(Rows(batch), Expected(batch))) {
    const size_t half = batch.size() / 2;
    std::vector<QueuedWork> later(std::make_move_iterator(batch.begin() + half),
                                  std::make_move_iterator(batch.end()));
    batch.erase(batch.begin() + half, batch.end());
    later = scheduler_.HandOver(std::move(later));
    for (QueuedWork& queued : later) batch.push_back(std::move(queued));
  }
  scheduler_.RunBatch(std::move(batch), scratch_);
}

void Stage::Run() {
  std::vector<QueuedWork> staged;
  staged.swap(staged_);
  expected_ = absl::ZeroDuration();
  // If there is no memory for a list, what it would have held is abandoned, and thereby answered.
  std::vector<std::vector<QueuedWork>> batches;
  for (size_t first = 0; first < staged.size(); ++first) {
    if (!Gone(staged[first])) batches.push_back(NextBatch(staged, first));
  }
  // Sleeping workers get all batches but the last, if the batches have enough rows.
  for (size_t i = 0; i + 1 < batches.size(); ++i) {
    if (Rows(batches[i]) >= kHandOverRows) batches[i] = scheduler_.HandOver(std::move(batches[i]));
  }
  for (std::vector<QueuedWork>& batch : batches) {
    if (!batch.empty()) RunBatch(std::move(batch));
  }
}

}  // namespace phimap
