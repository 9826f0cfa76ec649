// The small requests of one event loop. They are collected while sockets are readable, and computed
// together at the end of the loop's round.
//
// There is no timer, so no request waits for others to join. Several requests are collected only
// while the machine is busy. Versions take turns in the order of their first request, with one
// batch each. If WorthHalving (batch_policy.h) holds for a batch, half of the batch goes to a
// sleeping worker. Not thread-safe: used on the loop's thread only.
#ifndef PHIMAP_SERVER_SERVING_STAGE_H_
#define PHIMAP_SERVER_SERVING_STAGE_H_

#include <vector>

#include "absl/time/time.h"
#include "core/engine/engine.h"
#include "server/schedule/transform_scheduler.h"
#include "server/transport/event_loop.h"

namespace phimap {

class Stage final : public StagedWork {
 public:
  explicit Stage(TransformScheduler& scheduler) : scheduler_(scheduler) {}

  // Returns the stage of this thread, or null if it has none.
  static Stage* OfThisThread();
  // Makes this the stage of the calling thread.
  void Attach();

  // Stages `work` and returns true. Leaves `work` unchanged and returns false if it is not small,
  // or if enough work is staged.
  bool Take(TransformWork& work);

  bool empty() const override { return staged_.empty(); }
  bool full() const override { return expected_ >= kLoopQuantum; }
  void Run() override;

 private:
  // Returns the next batch: requests of one version, from index `first` on, with at most kBatchRows
  // rows or a single request.
  std::vector<QueuedWork> NextBatch(std::vector<QueuedWork>& staged, size_t first);
  absl::Duration Expected(const std::vector<QueuedWork>& batch) const;
  void RunBatch(std::vector<QueuedWork> batch);

  TransformScheduler& scheduler_;
  EngineScratch scratch_;
  std::vector<QueuedWork> staged_;
  // Expected time of all staged work.
  absl::Duration expected_ = absl::ZeroDuration();
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SERVING_STAGE_H_
