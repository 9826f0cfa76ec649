// From a call's rows to the engine and back, shared by all calls that map rows, for all protocols.
#ifndef PHIMAP_SERVER_SERVING_ROW_SERVER_H_
#define PHIMAP_SERVER_SERVING_ROW_SERVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/plan/examples.h"
#include "server/observe/transform_metrics.h"
#include "server/registry/version_handle.h"
#include "server/registry/version_registry.h"
#include "server/schedule/transform_scheduler.h"
#include "server/serving/stage.h"
#include "server/transport/event_loop.h"

namespace phimap {

// Rows to be mapped by a version, and the callbacks.
struct RowRequest {
  // Pinned until `done` has returned.
  VersionHandle version;
  // REQUIRES: the version takes them (CheckTakes). Their bytes stay readable until `done`.
  ExamplesView rows;
  // Path of the rows in the request, for errors; includes a last dot: "examples.dense.".
  absl::string_view field;
  absl::Time deadline = absl::InfiniteFuture();
  // Set to true by whoever cancels the request; outlives `done`.
  const std::atomic<bool>* cancelled = nullptr;
  // When they were read, for the metrics.
  absl::Time received = absl::InfinitePast();
  // Whether other answers of the same call are in progress, which the event loop has to send
  // (WorthAWorker).
  bool others_under_way = false;
  // Called once, on the thread that computes, before the first row is: returns where the features
  // go, row after row in the serving type. Not called for rows that are dropped. May throw
  // std::bad_alloc.
  std::function<char*()> allocate;
  // Called exactly once, on any thread, perhaps within Serve. `seen` are the engine's rows,
  // readable until it returns: the request's own, or the remote kernel's values.
  std::function<void(const absl::Status&, const ExamplesView& seen)> done;
};

// Thread-safe.
class RowServer {
 public:
  // Both outlive the server.
  RowServer(TransformScheduler& scheduler, const TransformMetrics& metrics)
      : scheduler_(scheduler), metrics_(metrics) {}

  // Makes features of the rows. For a remote kernel the service is asked first, without a thread
  // that waits (server/kernel_client/kernel_queue.h).
  //
  // Errors for `done`: INVALID_ARGUMENT (CheckExamples), CANCELLED, DEADLINE_EXCEEDED,
  // RESOURCE_EXHAUSTED (MACHINE_MEMORY_FULL), UNAVAILABLE (SERVER_SHUTTING_DOWN), and those of the
  // engine and of the kernel queue.
  void Serve(RowRequest request);

  // Gives a loop's thread its own stage: small requests that are served from there are computed
  // there. Before the loop serves, or never.
  void AddLoop(EventLoop& loop);

  const TransformMetrics& metrics() const { return metrics_; }

 private:
  // Input of the engine: the request's rows, or remote kernel values.
  struct Mapping;
  void ServeRemote(const std::shared_ptr<Mapping>& mapping);
  void Compute(std::shared_ptr<Mapping> mapping);

  TransformScheduler& scheduler_;
  const TransformMetrics& metrics_;
  std::vector<std::unique_ptr<Stage>> stages_;
};

// Bytes of the features of a row.
int64_t FeatureRowBytes(const VersionHandle& version);

// Whether ρ can be computed of the rows, as far as it depends on them: kernel values that come with
// the request may be without K(x, x).
bool HasSelfValues(const VersionHandle& version, const ExamplesView& rows);

// RESOURCE_EXHAUSTED (MESSAGE_TOO_LARGE, with the number of rows that would fit) if the answer to
// this many rows, with `extra_row_bytes` per row beside its features, is larger than a message may
// be.
absl::Status CheckAnswerFits(const VersionHandle& version, int64_t rows, int64_t extra_row_bytes,
                             int64_t max_message_bytes);

}  // namespace phimap

#endif  // PHIMAP_SERVER_SERVING_ROW_SERVER_H_
