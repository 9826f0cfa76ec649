// Small requests of one event loop: gathered while there is something to read, computed together
// before the loop reads on.
//
// No timer: nothing waits for company, and requests gather exactly while the machine is busy.
// Versions take turns in the order of their first request, one batch each; half of a batch that is
// WorthHalving (batch_policy.h) goes to a worker that sleeps. Not thread-safe: it lives on its
// loop's thread.
#ifndef PHIMAP_SERVER_SERVING_STAGE_H_
#define PHIMAP_SERVER_SERVING_STAGE_H_

#include <vector>

#include "absl/time/time.h"
#include "core/engine/engine.h"
#include "server/schedule/transform_scheduler.h"
#include "server/schedule/transform_work.h"
#include "server/transport/event_loop.h"

namespace phimap {

class Stage final : public StagedWork {
 public:
  explicit Stage(TransformScheduler& scheduler) : scheduler_(scheduler) {}

  // The stage of this thread; null on a thread without a stage.
  static Stage* OfThisThread();
  // Makes this the stage of the thread.
  void Attach();

  // Stages `work`, or leaves it alone: it is not small, or enough is staged.
  bool Take(TransformWork& work);

  bool empty() const override { return staged_.empty(); }
  bool full() const override { return expected_ >= kLoopQuantum; }
  void Run() override;

 private:
  // The next batch: of one version, from `first` on, at most kBatchRows rows or one request.
  std::vector<QueuedWork> NextBatch(std::vector<QueuedWork>& staged, size_t first);
  absl::Duration Expected(const std::vector<QueuedWork>& batch) const;
  void RunBatch(std::vector<QueuedWork> batch);

  TransformScheduler& scheduler_;
  EngineScratch scratch_;
  std::vector<QueuedWork> staged_;
  // Expected time of all the work.
  absl::Duration expected_ = absl::ZeroDuration();
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SERVING_STAGE_H_
