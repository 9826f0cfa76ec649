#include "server/build/build_manager.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <optional>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/thread/start_thread.h"
#include "core/thread/steady_time.h"
#include "server/build/build_error.h"
#include "server/build/stored_build.h"
#include "server/store/sha256.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// Number of finished builds that stay in memory. Older ones are read from the store.
constexpr size_t kRemembered = 64;

}  // namespace

BuildManager::BuildManager(Options options, Store& store, VersionRegistry& registry,
                           TaskPool& store_pool, const BuildMetrics& metrics, const Logger& logger)
    : options_(std::move(options)),
      store_(store),
      registry_(registry),
      store_pool_(store_pool),
      metrics_(metrics),
      logger_(logger),
      memory_(options_.memory_bytes, metrics.memory_bytes),
      computation_({options_.compute_threads, options_.kernels, options_.training_threads,
                    options_.spool_folder, options_.spool_bytes, options_.now},
                   store_, memory_, metrics),
      compute_queue_(options_.compute_threads),
      ingest_queue_(options_.ingest_threads),
      idle_watch_(StartThread("silent builds", [this] { WatchIdle(); })) {
  if (store_.claims() != nullptr) {
    claim_watch_ = StartThread("the claims of builds", [this] { WatchClaims(); });
  }
}

BuildManager::~BuildManager() {
  {
    MutexLock lock(&mutex_);
    PHIMAP_CHECK(draining_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  idle_watch_.join();
  if (claim_watch_.joinable()) claim_watch_.join();
}

void BuildManager::SetLimits(int max_builds, int64_t memory_bytes, int64_t spool_bytes) {
  places_.SetPlaces(max_builds);
  memory_.SetMaxBytes(memory_bytes);
  computation_.SetSpoolBytes(spool_bytes);
}

void BuildManager::Begin(BuildId id, BuildOrder order,
                         std::function<void(absl::StatusOr<Attachment>)> done) {
  if (absl::Status listed = CheckKernel(order.spec); !listed.ok()) return done(listed);
  std::string digest = order.Digest();
  std::optional<absl::StatusOr<Attachment>> known;
  {
    MutexLock lock(&mutex_);
    known = AttachToKnown(id, digest);
    if (!known.has_value()) ++pending_;
  }
  if (known.has_value()) return done(*std::move(known));
  const CallerPointer submitter = order.caller;
  // Also without memory to queue the look-up: Drain would wait for it forever.
  bool will_end = false;
  const absl::Cleanup end_pending = [&] {
    if (!will_end) EndPending();
  };
  const absl::Status queued = store_pool_.Submit(
      [this, id = std::move(id), order = std::move(order), digest = std::move(digest), done] {
        done(LookUp(id, order, digest));
        EndPending();
      },
      submitter);
  will_end = queued.ok();
  if (!queued.ok()) done(queued);
}

absl::Status BuildManager::CheckKernel(const BuildSpec& spec) const {
  return computation_.CheckKernel(spec);
}

std::optional<absl::StatusOr<BuildManager::Attachment>> BuildManager::AttachToKnown(
    const BuildId& id, const std::string& digest) const {
  if (const auto known = jobs_.find(id); known != jobs_.end()) {
    const std::shared_ptr<BuildJob> job = known->second.job;
    const BuildSnapshot snapshot = job->Snapshot();
    if (snapshot.state != BuildState::kFailed || !IsTransient(snapshot.error)) {
      if (job->spec_digest() != digest) return OtherSpec(id);
      if (snapshot.state == BuildState::kReceiving) return StillOpen(id);
      // Only the store knows whether another server has deleted the version of a finished build.
      const bool ask = snapshot.state == BuildState::kDone && store_.claims() != nullptr;
      if (!ask) return Attachment{job, /*attached=*/true};
    }
  }
  if (draining_) return ShuttingDown("the server is shutting down");
  return std::nullopt;
}

absl::StatusOr<BuildManager::Attachment> BuildManager::LookUp(const BuildId& id,
                                                              const BuildOrder& order,
                                                              const std::string& digest) {
  absl::StatusOr<StoredBuild> stored = ReadStored(id);
  if (!absl::IsNotFound(stored.status())) {
    if (!stored.ok()) return stored.status();
    return AttachToStored(id, digest, *std::move(stored));
  }
  BuildClaims* const claims = store_.claims();
  if (claims != nullptr) {
    // Before it counts for its caller's rate: a client asks again and again for an id whose server
    // has died, until the claim is over.
    PHIMAP_ASSIGN_OR_RETURN(const std::optional<BuildClaim> claim,
                            claims->Find(id.mapping, id.build_id));
    const bool elsewhere =
        claim.has_value() && !claim->over() && claim->claimant.server_id != claims->server_id();
    if (elsewhere) return AttachElsewhere(id, digest, *claim);
  }
  // Before the rows are sent; the transaction that stores the version checks it again.
  PHIMAP_RETURN_IF_ERROR(store_.CheckCanAdd(order.origin));
  absl::StatusOr<Attachment> entered = Enter(id, order, digest);
  if (!entered.ok() || entered->attached || claims == nullptr) return entered;
  return Claim(entered->job);
}

absl::StatusOr<BuildManager::Attachment> BuildManager::AttachToStored(const BuildId& id,
                                                                      const std::string& digest,
                                                                      StoredBuild stored) {
  if (stored.spec_digest != digest) return OtherSpec(id);
  return Attachment{std::make_shared<BuildJob>(std::move(stored.snapshot), digest, metrics_),
                    /*attached=*/true};
}

absl::StatusOr<StoredBuild> BuildManager::ReadStored(const BuildId& id) {
  return CatchOutOfMemory<absl::StatusOr<StoredBuild>>(
      [&] { return ReadStoredBuild(store_, registry_, id, &memory_); });
}

absl::StatusOr<BuildManager::Attachment> BuildManager::Enter(const BuildId& id,
                                                             const BuildOrder& order,
                                                             const std::string& digest) {
  MutexLock lock(&mutex_);
  // Another stream may have entered this id during the look-up in the store.
  std::optional<absl::StatusOr<Attachment>> known = AttachToKnown(id, digest);
  if (known.has_value()) return *std::move(known);
  PHIMAP_RETURN_IF_ERROR(computation_.CheckEverFits(order));
  std::optional<SharedPlaces::Place> place = places_.Take(order.caller);
  if (!place.has_value()) {
    return TooManyBuilds(unfinished_, places_.Text(order.caller), places_.LimitOf(order.caller));
  }
  if (order.principal != nullptr) {
    PHIMAP_RETURN_IF_ERROR(order.principal->Spend(Rated::kBuilds, 1, SteadyNow()));
  }
  auto job = std::make_shared<BuildJob>(id, order, digest, options_.now(),
                                        WorkQuantum(options_.yield, options_.quantum), metrics_);
  job->SetPlace(*std::move(place));
  jobs_[id] = {job, next_sequence_++};
  ++unfinished_;
  return Attachment{std::move(job), /*attached=*/false};
}

void BuildManager::EndPending() {
  MutexLock lock(&mutex_);
  --pending_;
  changed_.NotifyAll();
}

void BuildManager::Add(std::shared_ptr<BuildJob> job, TrainingBlock block,
                       std::function<void(absl::Status)> done) {
  Queue(ingest_queue_, job, [this, job, block = std::move(block), done] {
    const absl::Status added = computation_.Add(*job, block);
    if (!added.ok()) Abandon(job, added);
    done(added);
  });
}

void BuildManager::Queue(JobQueue& queue, const std::shared_ptr<BuildJob>& job,
                         JobQueue::Task task) {
  queue.Submit(job, std::move(task));
  // If the job ended before Submit, the call of Withdraw at its end did not find this task.
  if (IsFinished(job->Snapshot().state)) Withdraw(*job);
}

void BuildManager::Withdraw(const BuildJob& job) {
  // Run here, the task finds that its job has ended, so it only reports that to its caller.
  for (JobQueue* queue : {&ingest_queue_, &compute_queue_}) {
    if (const JobQueue::Task task = queue->Withdraw(&job)) task();
  }
}

absl::Status BuildManager::Finish(const std::shared_ptr<BuildJob>& job, int64_t row_count) {
  const int64_t came = job->Snapshot().rows_received;
  if (row_count != came) {
    const absl::Status error = WrongRowCount(row_count, came);
    Abandon(job, error);
    return error;
  }
  const absl::Status queued = CatchOutOfMemory<absl::Status>([&]() -> absl::Status {
    if (!job->Apply(BuildEvent::kFinish)) return job->Snapshot().error;
    Queue(compute_queue_, job, [this, job] { Run(job); });
    return absl::OkStatus();
  });
  // A build that is queued outlives its call, so nobody else would end one that no thread takes.
  if (!queued.ok()) End(job, {BuildEvent::kFail, queued, Keep::kInMemory});
  return queued;
}

void BuildManager::Abandon(const std::shared_ptr<BuildJob>& job, const absl::Status& error) {
  End(job, {BuildEvent::kAbandon, error, Keep::kNothing});
}

void BuildManager::Run(const std::shared_ptr<BuildJob>& job) {
  if (!job->Apply(BuildEvent::kStart)) return;  // cancelled while it was queued
  const Clock::time_point started = Clock::now();
  absl::StatusOr<BuiltVersion> built = computation_.Compute(*job);
  if (!built.ok()) return Fail(job, built.status());
  if (!job->Apply(BuildEvent::kComputed)) return;  // cancelled after the last checkpoint
  absl::StatusOr<CertifiedVersion> version = CatchOutOfMemory<absl::StatusOr<CertifiedVersion>>(
      [&] { return Publish(*job, *std::move(built)); });
  if (!version.ok()) return Fail(job, version.status());
  metrics_.seconds->Observe(std::chrono::duration<double>(Clock::now() - started).count());
  // Cannot fail: only this thread ends a publishing build.
  PHIMAP_CHECK(End(job, {BuildEvent::kPublished, absl::OkStatus(), Keep::kInMemory,
                         std::make_shared<const CertifiedVersion>(*std::move(version))}));
}

absl::StatusOr<CertifiedVersion> BuildManager::Publish(const BuildJob& job, BuiltVersion built) {
  PublishRequest request;
  request.version.mapping = job.id().mapping;
  request.version.input_columns = built.input_columns;
  request.version.output_columns = built.output_columns;
  request.version.serving_type = std::string(FloatTypeName(built.serving_type));
  request.version.spec_text = built.provenance.spec_text;
  request.version.kernel_text = built.provenance.kernel_text;
  request.version.ttl = job.ttl();
  request.build_id = job.id().build_id;
  request.spec_digest = job.spec_digest();
  request.rows_received = job.Snapshot().rows_received;
  request.claimant = ClaimantOf(job);
  request.origin = job.order().origin;
  PHIMAP_ASSIGN_OR_RETURN(VersionRecord record, store_.Publish(request, built.bytes));
  // The version is published even if its name cannot be read now; the registry logs that error.
  registry_.CatchUp().IgnoreError();
  return CertifiedVersion{std::move(record),
                          std::move(built.certificate),
                          built.provenance.standardize,
                          built.provenance.seed,
                          std::move(built.provenance.column_names),
                          std::move(built.head)};
}

void BuildManager::Fail(const std::shared_ptr<BuildJob>& job, const absl::Status& error) {
  End(job, {BuildEvent::kFail, error, IsTransient(error) ? Keep::kInMemory : Keep::kInStore});
}

std::optional<BuildClaimant> BuildManager::ClaimantOf(const BuildJob& job) const {
  if (job.claim_epoch() == 0) return std::nullopt;
  return BuildClaimant{store_.claims()->server_id(), job.claim_epoch()};
}

void BuildManager::RecordFailure(const BuildJob& job, const Ending& ending) {
  BuildRecord record = FailureRecord(job, ending.error);
  record.claimant = ClaimantOf(job);
  const absl::Status recorded =
      store_.RecordFailedBuild(record, job.order().origin, ending.cancelled_by);
  if (recorded.ok()) return;
  // The client still gets its answer; only later look-ups of this build will not find it.
  const LoggedError why = ErrorForLog(recorded);
  logger_.Log(LogLevel::kWarning, "build_record_failed",
              {{"mapping", job.id().mapping},
               {"build_id", job.id().build_id},
               {"code", why.code},
               {"reason", why.reason},
               {"error", why.message}});
}

bool BuildManager::End(const std::shared_ptr<BuildJob>& job, Ending ending) {
  {
    MutexLock lock(&mutex_);
    // One critical section: when observers see that the build has ended, its id and place are free.
    if (!job->Move(ending.event, ending.error, std::move(ending.version))) return false;
    --unfinished_;
    job->SetPlace({});
    ++pending_;
    const auto known = jobs_.find(job->id());
    if (known != jobs_.end() && known->second.job == job && known->second.ask_store &&
        ending.keep == Keep::kInMemory) {
      ending.keep = Keep::kNothing;
    }
    if (ending.keep == Keep::kNothing) Forget(job);
  }
  // Also if there is no memory for what follows.
  const absl::Cleanup end_pending = [this] { EndPending(); };
  try {
    if (ending.keep == Keep::kInStore) RecordFailure(*job, ending);
    if (ending.event != BuildEvent::kPublished) ReleaseSoon(*job);
    LogEnd(*job);
  } catch (const std::bad_alloc&) {
    // Those who follow the build must learn of its end.
  }
  job->Announce();
  Withdraw(*job);
  if (ending.keep != Keep::kNothing) Remember(job);
  return true;
}

void BuildManager::LogEnd(const BuildJob& job) const {
  const BuildSnapshot snapshot = job.Snapshot();
  const bool done = snapshot.state == BuildState::kDone;
  const LoggedError why = ErrorForLog(snapshot.error);
  const ChangeOrigin& origin = job.order().origin;
  logger_.Log(done ? LogLevel::kInfo : LogLevel::kWarning, done ? "build_done" : "build_ended",
              {{"mapping", job.id().mapping},
               {"build_id", job.id().build_id},
               {"rows", snapshot.rows_received},
               {"version", done ? std::optional(snapshot.version->record.number) : std::nullopt},
               {"code", why.code},
               {"reason", why.reason},
               {"field", why.field},
               {"error", why.message},
               {"peer", origin.peer},
               {"caller", origin.principal},
               {"request_id", origin.request_id},
               {"trace_id", origin.trace_id}});
}

void BuildManager::Remember(const std::shared_ptr<BuildJob>& job) {
  MutexLock lock(&mutex_);
  remembered_.push_back(job);
  if (remembered_.size() <= kRemembered) return;
  Forget(remembered_.front());
  remembered_.pop_front();
}

void BuildManager::VersionsGone(absl::string_view mapping, std::optional<int64_t> number) {
  std::vector<std::shared_ptr<BuildJob>> gone;
  MutexLock lock(&mutex_);
  for (auto& [id, known] : jobs_) {
    if (id.mapping != mapping) continue;
    const BuildSnapshot snapshot = known.job->Snapshot();
    if (snapshot.state == BuildState::kPublishing) known.ask_store = true;
    if (snapshot.state != BuildState::kDone) continue;
    if (!number.has_value() || snapshot.version->record.number == *number)
      gone.push_back(known.job);
  }
  for (const std::shared_ptr<BuildJob>& job : gone) Forget(job);
}

void BuildManager::Forget(const std::shared_ptr<BuildJob>& job) {
  const auto known = jobs_.find(job->id());
  // The id may belong to a newer job by now.
  if (known != jobs_.end() && known->second.job == job) jobs_.erase(known);
}

std::shared_ptr<BuildJob> BuildManager::Find(const BuildId& id) const {
  MutexLock lock(&mutex_);
  const auto known = jobs_.find(id);
  return known == jobs_.end() ? nullptr : known->second.job;
}

absl::StatusOr<BuildSnapshot> BuildManager::Get(const BuildId& id) {
  const std::shared_ptr<BuildJob> job = Find(id);
  const bool shared = store_.claims() != nullptr;
  // Another server may have deleted the version of a finished build.
  if (job != nullptr && !(shared && job->Snapshot().state == BuildState::kDone)) {
    return job->Snapshot();
  }
  // Looks for a claim before asking the store: a build that ends between the two look-ups is found
  // in the store.
  if (job == nullptr) {
    absl::StatusOr<BuildSnapshot> elsewhere = GetElsewhere(id);
    if (!absl::IsNotFound(elsewhere.status())) return elsewhere;
  }
  absl::StatusOr<StoredBuild> stored = ReadStored(id);
  if (absl::IsNotFound(stored.status())) return NoSuchBuild(id);
  if (job != nullptr && absl::IsUnavailable(stored.status())) return job->Snapshot();
  if (!stored.ok()) return stored.status();
  return std::move(stored->snapshot);
}

absl::StatusOr<BuildSnapshot> BuildManager::Cancel(const BuildId& id, const ChangeOrigin& origin) {
  const std::shared_ptr<BuildJob> job = Find(id);
  // The line of the build's end names the caller who ordered it.
  logger_.Log(LogLevel::kInfo, "build_cancel_asked",
              {{"mapping", id.mapping},
               {"build_id", id.build_id},
               {"peer", origin.peer},
               {"caller", origin.principal},
               {"request_id", origin.request_id},
               {"trace_id", origin.trace_id}});
  if (job == nullptr) return store_.claims() == nullptr ? Get(id) : CancelElsewhere(id, origin);
  CancelNow(job, &origin);
  return job->Snapshot();
}

void BuildManager::CancelNow(const std::shared_ptr<BuildJob>& job, const ChangeOrigin* origin) {
  End(job, {BuildEvent::kCancel, CancelledByCall(), Keep::kInStore, nullptr, origin});
}

std::vector<BuildSnapshot> BuildManager::List(absl::string_view mapping) const {
  std::vector<Known> known;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, entry] : jobs_) {
      if (mapping.empty() || id.mapping == mapping) known.push_back(entry);
    }
  }
  std::sort(known.begin(), known.end(),
            [](const Known& a, const Known& b) { return a.sequence > b.sequence; });
  std::vector<BuildSnapshot> snapshots;
  for (const Known& entry : known) {
    snapshots.push_back(entry.job->Snapshot());
    snapshots.back().order = entry.sequence;
  }
  return snapshots;
}

std::vector<std::shared_ptr<BuildJob>> BuildManager::Unfinished() const {
  std::vector<std::shared_ptr<BuildJob>> jobs;
  MutexLock lock(&mutex_);
  for (const auto& [id, entry] : jobs_) {
    if (!IsFinished(entry.job->Snapshot().state)) jobs.push_back(entry.job);
  }
  return jobs;
}

void BuildManager::EndIdleBuilds() {
  const Clock::time_point now = options_.now();
  for (const std::shared_ptr<BuildJob>& job : Unfinished()) {
    const std::optional<Clock::time_point> since = job->WaitingSince();
    if (!since.has_value() || absl::FromChrono(now - *since) < options_.idle_timeout) continue;
    Abandon(job, MakeError(Code::kDeadlineExceeded, reason::kStreamIdle, "",
                           absl::StrCat("no message came for ",
                                        absl::FormatDuration(options_.idle_timeout),
                                        " and the stream was not finished"),
                           {{"limit", absl::FormatDuration(options_.idle_timeout)}}));
  }
}

void BuildManager::WatchIdle() {
  const auto period = absl::ToChronoNanoseconds(
      std::clamp(options_.idle_timeout / 8, absl::Milliseconds(50), absl::Seconds(10)));
  while (true) {
    {
      MutexLock lock(&mutex_);
      const auto wake = Clock::now() + period;
      while (!stopping_ && changed_.WaitUntil(&mutex_, wake)) {
      }
      if (stopping_) return;
    }
    EndIdleBuilds();
  }
}

void BuildManager::Drain(Clock::time_point deadline) {
  // Streams are cut at this deadline or shortly before it. So a build whose client is connected now
  // is treated as followed even if its stream is cut before the build is cancelled.
  std::set<std::shared_ptr<BuildJob>> followed;
  for (std::shared_ptr<BuildJob>& job : Unfinished()) {
    if (job->IsFollowed()) followed.insert(std::move(job));
  }
  {
    MutexLock lock(&mutex_);
    draining_ = true;
    while (unfinished_ > 0 && changed_.WaitUntil(&mutex_, deadline)) {
    }
  }
  const absl::Status error =
      ShuttingDown("the server shut down before the build was done; send the stream again");
  for (const std::shared_ptr<BuildJob>& job : Unfinished()) {
    // A followed build is not recorded: its id may be streamed again.
    if (followed.contains(job) || job->IsFollowed()) {
      End(job, {BuildEvent::kCancel, error, Keep::kInMemory});
    } else {
      End(job, {BuildEvent::kCancel, AbortedByRestart(), Keep::kInStore});
    }
  }
  // Publishing builds end soon by themselves, and so do pending look-ups and calls to the store.
  {
    MutexLock lock(&mutex_);
    while (unfinished_ + pending_ > 0) changed_.Wait(&mutex_);
  }
  if (store_.claims() == nullptr) return;
  ReleaseClaims();
  // Another thread may be releasing some.
  MutexLock lock(&mutex_);
  while (pending_ > 0) changed_.Wait(&mutex_);
}

}  // namespace phimap
