// One request for features, as it waits in a queue.
#ifndef PHIMAP_SERVER_SCHEDULE_TRANSFORM_WORK_H_
#define PHIMAP_SERVER_SCHEDULE_TRANSFORM_WORK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/engine/engine.h"
#include "core/plan/examples.h"
#include "server/observe/version_tally.h"

namespace phimap {

struct TransformWork {
  // Keeps the version alive; work of one engine shares a queue.
  std::shared_ptr<const Engine> engine;
  // REQUIRES: the engine takes them; the bytes stay readable until `done`.
  ExamplesView rows;
  // Path of the rows in the request, which errors put before "rows[i]"; includes a last dot.
  // Outlives `done`.
  absl::string_view field;
  absl::Time deadline = absl::InfiniteFuture();
  // Set to true by whoever cancels the request; outlives `done`. Null if the request cannot be
  // cancelled.
  const std::atomic<bool>* cancelled = nullptr;
  // When the request was read, for the metrics; InfinitePast: not known.
  absl::Time received = absl::InfinitePast();
  // Called once on the thread that computes, right before the first row is: checks the values and
  // returns where the features go; its errors name fields within the rows. Not called for work that
  // is dropped, so that waiting costs no memory.
  std::function<absl::StatusOr<char*>()> prepare;
  // Called exactly once, on the thread that computes, or within Submit if the work is refused.
  std::function<void(const absl::Status&)> done;

  // Counts the batches of its version; outlives `engine`'s pin. Null: not counted.
  VersionTally* tally = nullptr;

  double Multiplications() const { return engine->Multiplications(rows); }
};

struct QueuedWork {
  TransformWork work;
  absl::Time enqueued;
  // State of long work that let others go first: the rows that are computed, the destination of the
  // features (null: not prepared yet) and the time spent so far.
  int64_t rows_done = 0;
  char* features = nullptr;
  absl::Duration computing = absl::ZeroDuration();

  int64_t RowsLeft() const { return work.rows.rows() - rows_done; }
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_TRANSFORM_WORK_H_
