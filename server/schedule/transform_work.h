// One request for features, as it waits in a queue.
#ifndef PHIMAP_SERVER_SCHEDULE_TRANSFORM_WORK_H_
#define PHIMAP_SERVER_SCHEDULE_TRANSFORM_WORK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

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
  // REQUIRES: the engine accepts these rows. The bytes must stay readable until `done`.
  ExamplesView rows;
  // Path of the rows in the request, including a final dot. Errors put it before "rows[i]". Must
  // outlive `done`.
  absl::string_view field;
  absl::Time deadline = absl::InfiniteFuture();
  // Set to true when the request is cancelled. Must outlive `done`. Null if the request cannot be
  // cancelled.
  const std::atomic<bool>* cancelled = nullptr;
  // Time at which the request was read, for the metrics. InfinitePast if unknown.
  absl::Time received = absl::InfinitePast();
  // Checks the values and returns the destination of the features. Called once on the computing
  // thread, right before the first row is computed, so that waiting work needs no memory for
  // features. Not called for work that is dropped. Errors name fields within the rows.
  std::function<absl::StatusOr<char*>()> prepare;
  // Called exactly once, on the computing thread, or within Submit if the work is rejected. If it
  // throws std::bad_alloc, it is called again with a status that needs no memory.
  std::function<void(const absl::Status&)> done;

  // Counts the batches of the version. Must live as long as `engine`. Null means not counted.
  VersionTally* tally = nullptr;

  double Multiplications() const { return engine->Multiplications(rows); }
};

// Work that was accepted and has to be finished. If it is destroyed before, because its holder
// found no memory, its `owner` finishes it with RESOURCE_EXHAUSTED.
struct QueuedWork {
  // Finishes accepted work.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Must not throw.
    virtual void Abandon(TransformWork& work) = 0;
  };

  QueuedWork(TransformWork accepted, absl::Time now, Owner& finisher)
      : work(std::move(accepted)), enqueued(now), owner(&finisher) {}
  QueuedWork(QueuedWork&& other) noexcept
      : work(std::move(other.work)),
        enqueued(other.enqueued),
        owner(std::exchange(other.owner, nullptr)),
        rows_done(other.rows_done),
        features(other.features),
        computing(other.computing) {}
  QueuedWork& operator=(QueuedWork&& other) noexcept {
    if (this == &other) return *this;
    if (owner != nullptr) owner->Abandon(work);
    work = std::move(other.work);
    enqueued = other.enqueued;
    owner = std::exchange(other.owner, nullptr);
    rows_done = other.rows_done;
    features = other.features;
    computing = other.computing;
    return *this;
  }
  ~QueuedWork() {
    if (owner != nullptr) owner->Abandon(work);
  }

  TransformWork work;
  absl::Time enqueued;
  // Null if the work was finished, or moved away.
  Owner* owner;
  // State of long work that has let others go first: the number of rows computed, the destination
  // of the features (null if not prepared yet) and the time spent so far.
  int64_t rows_done = 0;
  char* features = nullptr;
  absl::Duration computing = absl::ZeroDuration();

  int64_t RowsLeft() const { return work.rows.rows() - rows_done; }
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_TRANSFORM_WORK_H_
