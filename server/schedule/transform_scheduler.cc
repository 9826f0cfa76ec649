#include "server/schedule/transform_scheduler.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
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

namespace {

using Code = absl::StatusCode;

// Maximum time until a build notices that no Transform is pending.
constexpr auto kLookAgain = std::chrono::milliseconds(1);
// Time after which a worker that found no memory for a batch tries again.
constexpr auto kMemoryPause = std::chrono::milliseconds(10);
// Time by which a call's deadline timer may fire early.
constexpr absl::Duration kTimerPrecision = absl::Milliseconds(5);

// Returns the next `rows` rows of a request.
TransformPart PartOf(const QueuedWork& queued, int64_t rows) {
  const Engine& engine = *queued.work.engine;
  const int64_t row_bytes = engine.output_columns() * FloatTypeBytes(engine.serving_type());
  return {.rows = queued.work.rows.Slice(queued.rows_done, rows),
          .features = queued.features + queued.rows_done * row_bytes,
          .status = absl::OkStatus()};
}

// Calls `done` with a status that needs no memory.
void DoneWithoutMemory(const TransformWork& work) {
  try {
    work.done(absl::ResourceExhaustedError(""));
  } catch (const std::bad_alloc&) {
    // A call handles its own lack of memory, so this is the work of nobody.
  }
}

absl::Status OutOfMemory() {
  return MakeError(Code::kResourceExhausted, reason::kMachineMemoryFull, "",
                   "not enough memory for this request", {}, /*retry_delay_ms=*/1000);
}

}  // namespace

TransformScheduler::TransformScheduler(Options options, const TransformMetrics& metrics)
    : options_(std::move(options)), metrics_(metrics) {
  PHIMAP_CHECK(options_.now != nullptr);
}

TransformScheduler::~TransformScheduler() {
  MutexLock lock(&mutex_);
  PHIMAP_CHECK(pending_.requests == 0);
}

void TransformScheduler::Accounting::Add(const TransformWork& work) {
  ++requests;
  multiplications += work.Multiplications();
}

void TransformScheduler::Accounting::Subtract(const Accounting& other) {
  requests -= other.requests;
  multiplications -= other.multiplications;
}

std::optional<QueuedWork> TransformScheduler::Accept(TransformWork work) {
  {
    MutexLock lock(&mutex_);
    if (!draining_) {
      pending_.Add(work);
      pending_requests_.store(pending_.requests);
      return QueuedWork(std::move(work), options_.now(), *this);
    }
  }
  work.done(MakeError(Code::kUnavailable, reason::kServerShuttingDown, "",
                      "the server is shutting down", {},
                      /*retry_delay_ms=*/1000));
  return std::nullopt;
}

void TransformScheduler::Submit(TransformWork work) {
  std::optional<QueuedWork> queued = Accept(std::move(work));
  if (!queued.has_value()) return;
  bool wake = false;
  {
    MutexLock lock(&mutex_);
    queues_.Push(*std::move(queued));
    wake = ClaimSleeper();
  }
  if (wake) work_queued_.NotifyOne();  // outside the lock, which the woken worker wants first
}

absl::Duration TransformScheduler::Estimate(const TransformWork& work) const {
  MutexLock lock(&mutex_);
  return ExpectedTime(work.Multiplications(), speed_.Of(work.engine));
}

std::vector<QueuedWork> TransformScheduler::HandOver(std::vector<QueuedWork> batch) {
  {
    MutexLock lock(&mutex_);
    if (sleeping_ <= waking_) return batch;
    size_t pushed = 0;
    try {
      for (; pushed < batch.size(); ++pushed) queues_.Push(std::move(batch[pushed]));
    } catch (const std::bad_alloc&) {
      // The caller computes the rest.
    }
    batch.erase(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(pushed));
    if (pushed == 0) return batch;
    ++waking_;
  }
  work_queued_.NotifyOne();
  return batch;
}

void TransformScheduler::RunBatch(std::vector<QueuedWork> batch, EngineScratch& scratch) {
  metrics_.inline_requests->Increment(static_cast<double>(batch.size()));
  const absl::Time started = options_.now();
  Run(std::move(batch), started, Computer::kCaller, scratch);
}

bool TransformScheduler::WorkerSleeps() const {
  MutexLock lock(&mutex_);
  return sleeping_ > waking_;
}

bool TransformScheduler::TransformsPending() const { return pending_requests_.load() > 0; }

void TransformScheduler::WaitWhilePending(absl::Duration max_wait) {
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(max_wait);
  MutexLock lock(&idle_mutex_);
  while (pending_requests_.load() > 0) {
    // The notifier does not take the lock, so that a waiter, which has a low priority, never delays
    // a Transform. A notification may therefore come between the check and the wait.
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return;
    idle_.WaitUntil(&idle_mutex_, std::min(deadline, now + kLookAgain));
  }
}

void TransformScheduler::RunWorker() {
  EngineScratch scratch;
  {
    MutexLock lock(&mutex_);
    ++workers_;
  }
  while (true) {
    std::vector<QueuedWork> batch = AwaitBatch();
    if (batch.empty()) return;
    RunOnPool(std::move(batch), scratch);
  }
}

bool TransformScheduler::ClaimSleeper() {
  if (sleeping_ <= waking_ || queues_.batches() <= waking_) return false;
  ++waking_;
  return true;
}

bool TransformScheduler::TryTake(std::vector<QueuedWork>& batch) {
  try {
    batch = queues_.Take(workers_);
    return true;
  } catch (const std::bad_alloc&) {
    return false;  // the requests wait, and calls that end give memory back
  }
}

std::vector<QueuedWork> TransformScheduler::AwaitBatch() {
  std::vector<QueuedWork> batch;
  bool wake = false;
  {
    MutexLock lock(&mutex_);
    while (queues_.empty() && !draining_) {
      ++sleeping_;
      work_queued_.Wait(&mutex_);
      --sleeping_;
      waking_ = std::max(0, waking_ - 1);  // a wait may also end without a notification
    }
    while (!TryTake(batch)) {
      work_queued_.WaitUntil(&mutex_, std::chrono::steady_clock::now() + kMemoryPause);
    }
    wake = ClaimSleeper();
  }
  if (wake) work_queued_.NotifyOne();
  return batch;
}

bool TransformScheduler::RunOne(EngineScratch& scratch) {
  std::vector<QueuedWork> batch;
  {
    MutexLock lock(&mutex_);
    batch = queues_.Take(std::max(1, workers_));
  }
  if (batch.empty()) return false;
  RunOnPool(std::move(batch), scratch);
  return true;
}

void TransformScheduler::RunOnPool(std::vector<QueuedWork> batch, EngineScratch& scratch) {
  const absl::Time started = options_.now();
  Run(std::move(batch), started, Computer::kWorker, scratch);
  metrics_.pool_busy_seconds->Increment(absl::ToDoubleSeconds(options_.now() - started));
}

void TransformScheduler::Run(std::vector<QueuedWork> batch, absl::Time started, Computer computer,
                             EngineScratch& scratch) {
  {
    MutexLock lock(&mutex_);
    ++computing_;
  }
  try {
    RunCounted(std::move(batch), started, computer, scratch);
  } catch (const std::bad_alloc&) {
    // What was not finished has been abandoned.
  }
  MutexLock lock(&mutex_);
  if (--computing_ == 0) none_pending_.NotifyAll();
}

void TransformScheduler::RunCounted(std::vector<QueuedWork> batch, absl::Time started,
                                    Computer computer, EngineScratch& scratch) {
  for (const QueuedWork& queued : batch) CountWait(queued, started);
  std::vector<Share> shares = Prepare(std::move(batch));
  if (shares.empty()) return;
  Compute(shares, started, computer, scratch);
  Observe(shares, options_.now() - started);
  Finished finished(*this);
  for (Share& share : shares) {
    if (share.finished()) {
      Finish(std::move(share.queued), share.status, finished);
    } else {
      Requeue(std::move(share.queued));
    }
  }
}

std::vector<TransformScheduler::Share> TransformScheduler::Prepare(std::vector<QueuedWork> batch) {
  Finished finished(*this);
  std::vector<Share> shares;
  shares.reserve(batch.size());
  for (QueuedWork& queued : batch) {
    if (absl::Status ready = PrepareOne(queued); ready.ok()) {
      const int64_t first_row = queued.rows_done;
      shares.push_back({std::move(queued), absl::OkStatus(), first_row});
    } else {
      Finish(std::move(queued), ready, finished);
    }
  }
  return shares;
}

absl::Status TransformScheduler::PrepareOne(QueuedWork& queued) const {
  if (absl::Status alive = CheckAlive(queued.work); !alive.ok()) return alive;
  if (queued.features != nullptr) return absl::OkStatus();
  try {
    PHIMAP_ASSIGN_OR_RETURN(queued.features, queued.work.prepare());
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

void TransformScheduler::Compute(std::vector<Share>& shares, absl::Time started, Computer computer,
                                 EngineScratch& scratch) const {
  try {
    if (shares.size() > 1) return ComputeTogether(shares, scratch);
    shares[0].status = ComputeTiles(shares[0].queued, started, computer, scratch);
  } catch (const std::bad_alloc&) {
    for (Share& share : shares) share.status = OutOfMemory();
  }
}

// Together the shares have at most a tile of rows: see TileRows.
void TransformScheduler::ComputeTogether(std::vector<Share>& shares, EngineScratch& scratch) const {
  std::vector<TransformPart> parts;
  parts.reserve(shares.size());
  for (const Share& share : shares) {
    parts.push_back(PartOf(share.queued, share.queued.RowsLeft()));
  }
  shares[0].queued.work.engine->Transform(absl::MakeSpan(parts), scratch);
  for (size_t i = 0; i < shares.size(); ++i) {
    shares[i].status = WithRowOffset(parts[i].status, shares[i].first_row);
    shares[i].queued.rows_done = shares[i].queued.work.rows.rows();
  }
}

absl::Status TransformScheduler::ComputeTiles(QueuedWork& queued, absl::Time started,
                                              Computer computer, EngineScratch& scratch) const {
  const Engine& engine = *queued.work.engine;
  const int64_t tile_rows = TileRows(engine.multiplications_per_row());
  while (true) {
    const int64_t count = std::min(tile_rows, queued.RowsLeft());
    TransformPart part = PartOf(queued, count);
    engine.Transform(absl::MakeSpan(&part, 1), scratch);
    if (!part.status.ok()) return WithRowOffset(part.status, queued.rows_done);
    queued.rows_done += count;
    if (queued.RowsLeft() == 0) return absl::OkStatus();
    if (absl::Status alive = CheckAlive(queued.work); !alive.ok()) return alive;
    if (computer == Computer::kWorker && QuantumIsOver(OthersWait(), options_.now() - started)) {
      return absl::OkStatus();
    }
  }
}

bool TransformScheduler::OthersWait() const {
  MutexLock lock(&mutex_);
  return !queues_.empty();
}

// The worker that computed the request looks for work next, so no worker needs to be woken.
void TransformScheduler::Requeue(QueuedWork queued) {
  MutexLock lock(&mutex_);
  queues_.Push(std::move(queued));
}

// At its deadline a call is also cancelled, by another timer. So a cancellation close to the
// deadline is reported as DEADLINE_EXCEEDED.
absl::Status TransformScheduler::CheckAlive(const TransformWork& work) const {
  const bool cancelled =
      work.cancelled != nullptr && work.cancelled->load(std::memory_order_relaxed);
  const absl::Duration early = cancelled ? kTimerPrecision : absl::ZeroDuration();
  if (work.deadline != absl::InfiniteFuture() && options_.now() + early >= work.deadline) {
    return absl::DeadlineExceededError("the deadline passed before the features were computed");
  }
  if (cancelled) return absl::CancelledError("the client cancelled the request");
  return absl::OkStatus();
}

void TransformScheduler::Observe(std::vector<Share>& shares, absl::Duration elapsed) {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  const Engine* const engine = shares[0].queued.work.engine.get();
  int64_t rows = 0;
  double multiplications = 0;
  bool whole = true;
  for (Share& share : shares) {
    QueuedWork& queued = share.queued;
    rows += share.rows();
    multiplications +=
        engine->Multiplications(queued.work.rows.Slice(share.first_row, share.rows()));
    queued.computing += elapsed;
    whole = whole && share.status.ok();
    if (!share.status.ok() || !share.finished()) continue;
    metrics_.RequestComputed(queued.work.rows.rows(), absl::ToDoubleSeconds(queued.computing));
  }
  metrics_.BatchComputed(static_cast<int64_t>(shares.size()), rows);
  VersionTally* const tally = shares[0].queued.work.tally;
  if (tally != nullptr) tally->BatchComputed();
  // The time of work that ended early says nothing about the speed.
  if (!whole || seconds <= 0) return;
  MutexLock lock(&mutex_);
  speed_.Learn(shares[0].queued.work.engine, multiplications, seconds);
}

void TransformScheduler::Finish(QueuedWork queued, const absl::Status& status,
                                Finished& finished) const {
  const TransformWork& work = queued.work;
  queued.owner = nullptr;
  finished.Add(work);
  CountDrop(status);
  try {
    work.done(WithFieldPrefix(status, work.field));
  } catch (const std::bad_alloc&) {
    DoneWithoutMemory(work);
  }
  // `queued` is destroyed here, before Release, so that after Drain nothing of the request is left.
}

void TransformScheduler::Abandon(TransformWork& work) {
  Accounting one;
  one.Add(work);
  DoneWithoutMemory(work);
  work = TransformWork();
  Release(one);
}

void TransformScheduler::CountWait(const QueuedWork& queued, absl::Time taken) const {
  if (queued.features != nullptr) return;  // it was counted when it was first taken
  if (queued.work.received != absl::InfinitePast()) {
    // Not negative, even if `received` was read from another clock than `enqueued`.
    const absl::Duration parse = queued.enqueued - queued.work.received;
    metrics_.parse_seconds->Observe(std::max(0.0, absl::ToDoubleSeconds(parse)));
  }
  const absl::Duration wait = taken - queued.enqueued;
  metrics_.queue_seconds->Observe(std::max(0.0, absl::ToDoubleSeconds(wait)));
}

// All other errors of accepted work are the fault of the request or of the engine, and are counted
// by the call.
void TransformScheduler::CountDrop(const absl::Status& status) const {
  if (status.code() == Code::kDeadlineExceeded) {
    metrics_.dropped[static_cast<int>(Drop::kDeadline)]->Increment();
  } else if (status.code() == Code::kCancelled) {
    metrics_.dropped[static_cast<int>(Drop::kCancelled)]->Increment();
  }
}

void TransformScheduler::Release(const Accounting& finished) {
  if (finished.requests == 0) return;
  MutexLock lock(&mutex_);
  pending_.Subtract(finished);
  pending_requests_.store(pending_.requests);
  if (pending_.requests > 0) return;
  none_pending_.NotifyAll();
  idle_.NotifyAll();
}

void TransformScheduler::Drain() {
  MutexLock lock(&mutex_);
  draining_ = true;
  work_queued_.NotifyAll();
  while (pending_.requests > 0 || computing_ > 0) none_pending_.Wait(&mutex_);
}

}  // namespace phimap
