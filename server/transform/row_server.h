// Maps rows of calls by the engine. Shared by all calls that map rows, for all protocols.
#ifndef PHIMAP_SERVER_TRANSFORM_ROW_SERVER_H_
#define PHIMAP_SERVER_TRANSFORM_ROW_SERVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/engine/engine.h"
#include "core/plan/examples.h"
#include "server/drift/drift_watcher.h"
#include "server/observe/metrics.h"
#include "server/registry/version_handle.h"
#include "server/registry/version_registry.h"
#include "server/rpc/transport/event_loop.h"
#include "server/schedule/transform_scheduler.h"
#include "server/trace/span.h"

namespace phimap {

// The small requests of one event loop. They are collected while sockets are readable, and computed
// together at the end of the loop's round.
//
// There is no timer, so no request waits for others to join. Several requests are collected only
// while the machine is busy. Versions take turns in the order of their first request, with one
// batch each. If WorthHalving (batch_policy.h) holds for a batch, half of the batch goes to a
// sleeping worker. Not thread-safe: used on the loop's thread only.
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

// The rows that a version should map, and callbacks.
struct RowRequest {
  // Pinned until `done` has returned.
  VersionHandle version;
  // REQUIRES: the version accepts these rows (CheckTakes). Their bytes must stay readable until
  // `done`.
  ExamplesView rows;
  // Path of the rows in the request, for errors, including a final dot: "examples.dense.".
  absl::string_view field;
  absl::Time deadline = absl::InfiniteFuture();
  // Set to true when the request is cancelled. Must outlive `done`.
  const std::atomic<bool>* cancelled = nullptr;
  // Time at which the rows were read, for the metrics.
  absl::Time received = absl::InfinitePast();
  // The call's span; the steps of the request become its children.
  SpanContext span = {};
  // Whether other answers of the same call are in progress, which the event loop has to send
  // (WorthAWorker).
  bool others_under_way = false;
  // Returns the destination of what the engine computes, row after row in the serving type.
  // Called once, on the computing thread, before the first row is computed. Not called for rows
  // that are dropped. May throw std::bad_alloc.
  std::function<char*()> allocate;
  // Called exactly once, on any thread, perhaps within Serve. `seen` are the rows that the engine
  // got, readable until `done` returns: the request's own, or the remote kernel's values.
  std::function<void(const absl::Status&, const ExamplesView& seen)> done;
};

// Thread-safe.
class RowServer {
 public:
  // The arguments must outlive the server. `drift`, if not null, is offered the rows.
  RowServer(TransformScheduler& scheduler, const TransformMetrics& metrics,
            DriftWatcher* drift = nullptr)
      : scheduler_(scheduler), metrics_(metrics), drift_(drift) {}

  // Computes the features of the rows. For a remote kernel, asks the service first, without
  // blocking a thread (server/kernel_client/kernel_queue.h).
  //
  // Errors for `done`: INVALID_ARGUMENT (CheckExamples), CANCELLED, DEADLINE_EXCEEDED,
  // RESOURCE_EXHAUSTED (MACHINE_MEMORY_FULL), UNAVAILABLE (SERVER_SHUTTING_DOWN), and those of the
  // engine and of the kernel queue.
  void Serve(RowRequest request);

  // Gives the thread of `loop` its own stage, so that it computes small requests that are served
  // from it. Must be called before the loop serves, or not at all.
  void AddLoop(EventLoop& loop);

  const TransformMetrics& metrics() const { return metrics_; }

 private:
  // State of a request while it is served.
  struct ServedRequest;
  void ServeRemote(const std::shared_ptr<ServedRequest>& served);
  void Compute(std::shared_ptr<ServedRequest> served);

  TransformScheduler& scheduler_;
  const TransformMetrics& metrics_;
  DriftWatcher* const drift_;
  std::vector<std::unique_ptr<Stage>> stages_;
};

// Returns the number of bytes of one row's features.
int64_t FeatureRowBytes(const VersionHandle& version);

// Returns whether the residual ρ can be computed for the rows, or is not needed. Kernel values that
// come with the request may lack K(x, x).
bool HasSelfValues(const VersionHandle& version, const ExamplesView& rows);

// Returns RESOURCE_EXHAUSTED (MESSAGE_TOO_LARGE) if the answer to this many rows, of `row_bytes`
// each, exceeds `max_message_bytes`. The error has the number of rows that would fit.
absl::Status CheckAnswerFits(int64_t row_bytes, int64_t rows, int64_t max_message_bytes);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_ROW_SERVER_H_
