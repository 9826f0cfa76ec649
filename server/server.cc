#include "server/server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/engine/engine.h"
#include "core/linalg/blas.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"
#include "core/thread/mutex.h"
#include "core/thread/start_thread.h"
#include "server/admission/access_control.h"
#include "server/admission/token_file.h"
#include "server/api_listener.h"
#include "server/build/build_manager.h"
#include "server/drift/drift_watcher.h"
#include "server/http/probe_endpoint.h"
#include "server/inference/inference_service.h"
#include "server/kernel_client/kernel_service.h"
#include "server/learning/learning_service.h"
#include "server/mapping/alias_certificates.h"
#include "server/mapping/mapping_service.h"
#include "server/observe/crash_record.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/predict/predict_service.h"
#include "server/registry/catalog_follower.h"
#include "server/registry/known_names.h"
#include "server/registry/revision_finder.h"
#include "server/registry/version_registry.h"
#include "server/rpc/standard_services.h"
#include "server/rpc/transport/event_loop.h"
#include "server/rpc/transport/listening_socket.h"
#include "server/schedule/compute_pool.h"
#include "server/schedule/task_pool.h"
#include "server/schedule/transform_scheduler.h"
#include "server/store/audit.h"
#include "server/store/audit_file.h"
#include "server/store/store.h"
#include "server/trace/tracer.h"
#include "server/transform/row_server.h"
#include "server/transform/transform_service.h"

namespace phimap {

// Loads the versions that aliases point to, between the start of a server and its readiness.
//
// Guarantees: calls `ready` at most once, on its own thread, when `registry` has loaded or skipped
// the versions that aliases point to, or after `at_most`. Does not call `ready` after the
// destructor has begun. Thread-safe.
class WarmStart {
 public:
  // REQUIRES: registry.WarmAliases() was called. `registry` and `logger` must outlive this object.
  WarmStart(VersionRegistry& registry, std::chrono::seconds at_most, const Logger& logger,
            std::function<void()> ready);
  // Stops the wait and the loading in the background.
  ~WarmStart();
  WarmStart(const WarmStart&) = delete;
  WarmStart& operator=(const WarmStart&) = delete;

 private:
  void Run(std::chrono::steady_clock::time_point started, std::chrono::seconds at_most);

  VersionRegistry& registry_;
  const Logger& logger_;
  const std::function<void()> ready_;
  std::thread thread_;
};

WarmStart::WarmStart(VersionRegistry& registry, std::chrono::seconds at_most, const Logger& logger,
                     std::function<void()> ready)
    : registry_(registry),
      logger_(logger),
      ready_(std::move(ready)),
      thread_(StartThread("warming", [this, started = std::chrono::steady_clock::now(), at_most] {
        Run(started, at_most);
      })) {}

WarmStart::~WarmStart() {
  registry_.StopWarming();
  thread_.join();
}

void WarmStart::Run(std::chrono::steady_clock::time_point started, std::chrono::seconds at_most) {
  using Warmth = VersionRegistry::Warmth;
  const Warmth warmth = registry_.AwaitWarm(started + at_most);
  if (warmth == Warmth::kStopped) return;
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - started;
  const double seconds = waited.count();
  if (warmth == Warmth::kWarm) {
    logger_.Log(LogLevel::kInfo, "aliases_warm", {{"seconds", seconds}});
  } else {
    logger_.Log(LogLevel::kWarning, "aliases_not_warm_in_time",
                {{"seconds", seconds}, {"versions_left", registry_.warming()}});
  }
  ready_();
}

// When a server becomes ready: once it knows names and accepts calls, and the versions that aliases
// point to are in memory, or took too long.
//
// Thread-safe.
class Readiness {
 public:
  // Calls `ready` at most once, on any thread, and not after Stop. `registry` and `logger` must
  // outlive this object.
  Readiness(VersionRegistry& registry, std::chrono::seconds warm_time, const Logger& logger,
            std::function<void()> ready)
      : registry_(registry), warm_time_(warm_time), logger_(logger), ready_(std::move(ready)) {}

  // The registry knows names: from the store, or from an earlier run. May be called again.
  void NamesAreKnown() ABSL_LOCKS_EXCLUDED(mutex_);
  void CallsAreAccepted() ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops the loading of versions in the background.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // What the server waits for, for people; "not serving" if for nothing more.
  std::string WaitsFor() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Begins to load versions if there is nothing else to wait for.
  void MayBegin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  VersionRegistry& registry_;
  const std::chrono::seconds warm_time_;
  const Logger& logger_;
  const std::function<void()> ready_;
  Mutex mutex_;
  bool names_known_ ABSL_GUARDED_BY(mutex_) = false;
  bool accepts_calls_ ABSL_GUARDED_BY(mutex_) = false;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<WarmStart> warm_start_ ABSL_GUARDED_BY(mutex_);
};

void Readiness::NamesAreKnown() {
  MutexLock lock(&mutex_);
  names_known_ = true;
  MayBegin();
}

void Readiness::CallsAreAccepted() {
  MutexLock lock(&mutex_);
  accepts_calls_ = true;
  MayBegin();
}

void Readiness::MayBegin() {
  if (!names_known_ || !accepts_calls_ || std::exchange(begun_, true)) return;
  registry_.WarmAliases();
  if (warm_time_ == warm_time_.zero() || registry_.warming() == 0) return ready_();
  warm_start_ = std::make_unique<WarmStart>(registry_, warm_time_, logger_, ready_);
}

void Readiness::Stop() {
  std::unique_ptr<WarmStart> stopped;
  {
    MutexLock lock(&mutex_);
    begun_ = true;
    stopped = std::move(warm_start_);
  }
  stopped.reset();
  registry_.StopWarming();
}

std::string Readiness::WaitsFor() {
  {
    MutexLock lock(&mutex_);
    if (!names_known_) return "waiting for the database: no names are known yet";
  }
  const int64_t warming = registry_.warming();
  if (warming == 0) return "not serving";
  return absl::StrCat("not serving yet: ", CountOf(warming, "version"), " that aliases point to ",
                      warming == 1 ? "has" : "have", " not been loaded yet");
}

namespace {

// Steps of the shutdown that run beside others.
//
// Their threads were started with the server, because when it ends, the system may have no more.
//
// A step that runs on a thread of `pool`, which has one for each.
class ShutdownStep {
 public:
  ShutdownStep(TaskPool& pool, std::function<void()> work) {
    PHIMAP_CHECK(pool.Submit([this, work = std::move(work)] {
                       work();
                       done_.Notify();
                     })
                     .ok());
  }
  void Await() { done_.WaitForNotification(); }

 private:
  absl::Notification done_;
};

// Stops the kernel services at a given time, or earlier if this object is destroyed before.
class DelayedStop {
 public:
  DelayedStop(TaskPool& pool, KernelServices& kernels, std::chrono::steady_clock::time_point at)
      : kernels_(kernels), waiting_(pool, [this, at] {
          {
            MutexLock lock(&mutex_);
            while (!now_ && changed_.WaitUntil(&mutex_, at)) {
            }
          }
          kernels_.Stop();
        }) {}
  ~DelayedStop() {
    {
      MutexLock lock(&mutex_);
      now_ = true;
      changed_.NotifyAll();
    }
    waiting_.Await();
  }
  DelayedStop(const DelayedStop&) = delete;
  DelayedStop& operator=(const DelayedStop&) = delete;

 private:
  KernelServices& kernels_;
  Mutex mutex_;
  CondVar changed_;
  bool now_ ABSL_GUARDED_BY(mutex_) = false;
  ShutdownStep waiting_;
};

constexpr int kStoreThreads = 2;
constexpr int kMaxQueuedStoreCalls = 512;
// One thread, because the store makes one change at a time.
constexpr int kAdminThreads = 1;
// A step each: the end of builds, and the end of kernel services.
constexpr int kEndingThreads = 2;
constexpr int kMaxQueuedAdminCalls = 512;
// Maximum time for which a build yields to Transforms after each quantum. Even on a server that is
// never idle, builds make progress: one quantum per such wait.
constexpr absl::Duration kBuildYield = absl::Milliseconds(20);
// An event loop that has not polled for this long is considered dead. In every tested scenario a
// loop polls within 5 ms.
constexpr absl::Duration kLoopIsDead = absl::Seconds(10);
// Number of threads that parse large messages, which would take an event loop too long.
constexpr int kParsingThreads = 1;
constexpr int kMaxQueuedMessages = 1024;

int ComputeThreads(const ServerOptions& options) {
  return options.compute_threads > 0 ? options.compute_threads : CpuBudgetOfThisProcess();
}

TransformScheduler::Options SchedulerOptions(const Server::Hooks& hooks) {
  TransformScheduler::Options out;
  if (hooks.transform_clock) out.now = hooks.transform_clock;
  return out;
}

KernelService::Options KernelOptions(const ServerOptions& options, std::string authorities) {
  return {.authorities = std::move(authorities),
          .time_limit = absl::Seconds(options.kernel_service_seconds),
          .max_message_bytes = options.max_message_bytes};
}

VersionRegistry::Options RegistryOptions(const ServerOptions& options,
                                         const KernelServices& kernels,
                                         AliasCertificates& certificates, DriftWatcher& drift,
                                         const Server::Hooks& hooks) {
  VersionRegistry::Options out;
  out.before_load = hooks.before_load;
  out.kernels = &kernels;
  out.alias_changed = [&certificates, &drift](VersionRegistry& registry, absl::string_view mapping,
                                              absl::string_view alias) {
    certificates.Refresh(registry, mapping, alias);
    drift.Refresh(registry, mapping, alias);
  };
  out.max_live_bytes = options.max_live_bytes;
  return out;
}

// Returns the function that long-running threads call to yield to Transforms.
std::function<void()> BuildYield(const Server::Hooks& hooks, TransformScheduler& scheduler) {
  if (hooks.build_yield) return hooks.build_yield;
  return [&scheduler] { scheduler.WaitWhilePending(kBuildYield); };
}

BuildManager::Options BuildOptions(const ServerOptions& options, int threads,
                                   const Server::Hooks& hooks, TransformScheduler& scheduler,
                                   const KernelServices& kernels) {
  BuildManager::Options out;
  out.kernels = &kernels;
  out.max_builds = options.max_builds;
  out.memory_bytes = options.build_memory_bytes;
  out.spool_folder = options.on_postgres() ? options.cache_dir : options.data_dir;
  out.spool_bytes = options.training_disk_bytes;
  out.idle_timeout = absl::Seconds(options.build_idle_seconds);
  // Leaves one core to Transform.
  out.compute_threads = std::max(1, threads - 1);
  out.ingest_threads = out.compute_threads;
  out.training_threads = std::max(1, threads);
  out.yield = BuildYield(hooks, scheduler);
  // Makes builds call the test's hook before every step.
  if (hooks.build_yield) out.quantum = WorkQuantum::Clock::duration::zero();
  if (hooks.build_clock) out.now = hooks.build_clock;
  return out;
}

std::optional<Role> CertificateRole(const ServerOptions& options) {
  if (options.tls.client_ca.empty()) return std::nullopt;
  return options.client_certificate_role;
}

// Returns the certificate authorities for kernel services (PEM). Empty means the system's
// authorities.
absl::StatusOr<std::string> KernelAuthorities(const ServerOptions& options) {
  if (options.kernel_service_ca.empty()) return std::string();
  return ReadAuthorities("kernel_service_ca", options.kernel_service_ca);
}

// Returns null if no traces are sent.
absl::StatusOr<std::unique_ptr<CollectorClient>> TraceCollector(const ServerOptions& options) {
  if (options.trace_endpoint.empty()) return nullptr;
  return CollectorClient::Make(options.trace_endpoint, "phimapd/" PHIMAP_VERSION);
}

std::unique_ptr<Store> MeteredStore(std::unique_ptr<Store> store, const StoreMetrics& metrics) {
  store->MeterWith(metrics);
  return store;
}

}  // namespace

// The parts of a server in order of dependency: a part uses only the parts above it, and is
// destroyed before them.
struct Server::Parts {
  Parts(const ServerOptions& options, std::unique_ptr<TokenFile> tokens,
        std::string kernel_authorities, std::unique_ptr<CollectorClient> collector,
        OpenedStore opened, const Logger& the_logger, const Hooks& hooks)
      : logger(the_logger),
        access(std::move(tokens), CertificateRole(options)),
        tracer(std::move(collector),
               {.ratio = options.trace_ratio, .version = PHIMAP_VERSION, .exporter = {}},
               metrics.traces(), logger),
        memory(options.memory_bytes, metrics.transform().memory_bytes),
        store(MeteredStore(std::move(opened.store), metrics.store())),
        member(std::move(opened.member)),
        cache(std::move(opened.cache)),
        upkeep(std::move(opened.upkeep)),
        changes(std::move(opened.changes)),
        store_facts(std::move(opened.facts)),
        crash_record(std::move(opened.crash_record)),
        threads(ComputeThreads(options)),
        callers(options.max_calls_per_caller),
        calls{.access = access,
              .memory = memory,
              .callers = callers,
              .parsing = parsing,
              .max_message_bytes = options.max_message_bytes,
              .logger = logger,
              .refusals = &refusals,
              .caller_series = &metrics.callers(),
              .tracer = &tracer},
        stream_idle_limit(absl::Seconds(options.stream_idle_seconds)),
        lame_duck(options.lame_duck_seconds),
        scheduler(SchedulerOptions(hooks), metrics.transform()),
        kernels(options.kernel_services, KernelOptions(options, std::move(kernel_authorities)),
                metrics.kernels()),
        drift(hooks.drift.value_or(DriftWatcher::Limits()), metrics.drift(), logger),
        registry(RegistryOptions(options, kernels, alias_certificates, drift, hooks), *store,
                 metrics.registry(), logger),
        revisions(registry, *store, store_pool),
        known_names(opened.names_path.empty()
                        ? nullptr
                        : std::make_unique<KnownNamesFile>(opened.names_path, options.store,
                                                           *PosixFileSystem(), registry, logger)),
        readiness(registry, std::chrono::seconds(options.warm_seconds), logger,
                  [this] { SetServing(true); }),
        builds(BuildOptions(options, threads, hooks, scheduler, kernels), *store, registry,
               store_pool, metrics.build(), logger),
        evaluation_memory(builds.memory(), "evaluations"),
        mapping_service(*store, registry, builds, drift, store_pool, admin_pool, logger),
        learning_service({builds, registry, *store, evaluation_memory, builds.idle_timeout(),
                          BuildYield(hooks, scheduler)}),
        inference{row_calls, *store, store_pool, stream_idle_limit, serving, PHIMAP_VERSION},
        compute_pool(threads, [this] { scheduler.RunWorker(); }) {
    access.CountReloadFailures(metrics.connections().token_reload_failures);
    AddServices();
  }

  void AddServices();
  void FollowCatalog();
  void WatchStore();
  void WatchUpkeep();
  void WatchCache();
  void WatchLoops();
  absl::Status CopyAudit(const ServerOptions& options);
  absl::Status LearnNames();
  void SetServing(bool is_serving);
  ProbeChecks Checks();
  void ShowLimits(const ServerOptions& options);
  absl::Status ServeMetrics(const ServerOptions& options);
  absl::Status ServeCalls(const ServerOptions& options);

  const Logger& logger;
  const AccessControl access;
  Metrics metrics;
  const Tracer tracer;
  RequestMemory memory;
  const std::unique_ptr<Store> store;
  // Null without --audit_log.
  std::unique_ptr<AuditFile> audit_file;
  const std::unique_ptr<FleetMember> member;
  const std::shared_ptr<ArtifactCache> cache;
  const std::unique_ptr<StoreUpkeep> upkeep;
  // Null after FollowCatalog, which moves it into `follower`.
  std::unique_ptr<ChangeFeed> changes;
  const std::function<StoreFacts()> store_facts;
  // Destroyed before the store, which keeps other servers from the record's folder.
  const std::unique_ptr<CrashRecord> crash_record;
  const int threads;
  TaskPool parsing{"messages to parse", kParsingThreads, kMaxQueuedMessages};
  CallerShares callers;
  RefusedChanges refusals{*store, logger};
  const CallEnvironment calls;
  const absl::Duration stream_idle_limit;
  const std::chrono::seconds lame_duck;
  Dispatcher dispatcher{calls, metrics};
  LoopWatch loops;
  TaskPool store_pool{"store calls", kStoreThreads, kMaxQueuedStoreCalls, metrics.store().waiting};
  // For SetAlias, DeleteAlias, DeleteVersion, DeleteMapping and KeepVersion, which must not wait
  // for readers' calls.
  TaskPool admin_pool{"administrative calls", kAdminThreads, kMaxQueuedAdminCalls};
  // For Shutdown, when the system may have no more threads.
  TaskPool ending{"steps of the shutdown", kEndingThreads, 2 * kEndingThreads};
  AliasCertificates alias_certificates{metrics.certificates()};
  TransformScheduler scheduler;
  KernelServices kernels;
  // Declared after what the versions of its rows refer to, and before the registry, which calls it.
  DriftWatcher drift;
  VersionRegistry registry;
  RevisionFinder revisions;
  // Null if the store cannot be away.
  const std::unique_ptr<KnownNamesFile> known_names;
  Readiness readiness;
  std::unique_ptr<CatalogFollower> follower;
  BuildManager builds;
  // Evaluations may take only half of the builds' memory. Callers with the role reader may start
  // them, so the other half is kept for builders.
  MemoryBudget evaluation_memory;
  RowServer rows{scheduler, metrics.transform(), &drift};
  const RowCallEnvironment row_calls{registry, rows};
  MappingService mapping_service;
  LearningService learning_service;
  std::atomic<bool> serving{false};
  HealthStatus health{{"phimap.v1.TransformService", "phimap.v1.MappingService",
                       "phimap.v1.LearningService", "phimap.v1.PredictService",
                       "inference.GRPCInferenceService"}};
  const InferenceEnvironment inference;
  ComputePool compute_pool;

  std::unique_ptr<ProbeEndpoint> http;
  std::unique_ptr<ApiListener> api;
  std::string http_address;
  bool shut_down = false;
};

void Server::Parts::AddServices() {
  dispatcher.SetRevisions(revisions);
  AddTransformService(row_calls, stream_idle_limit, dispatcher);
  AddPredictService(row_calls, stream_idle_limit, dispatcher);
  mapping_service.AddTo(dispatcher);
  learning_service.AddTo(dispatcher);
  AddInferenceService(inference, dispatcher);
  AddHealthService(health, dispatcher);
  AddReflectionService(dispatcher);
}

void Server::Parts::SetServing(bool is_serving) {
  health.SetServing(is_serving);
  serving = is_serving;
}

ProbeChecks Server::Parts::Checks() {
  ProbeChecks checks;
  checks.live = [this]() -> std::string {
    const absl::Duration busy = loops.BusyFor();
    if (busy < kLoopIsDead) return "";
    return absl::StrCat("an event loop has not looked at its sockets for ",
                        absl::FormatDuration(busy));
  };
  checks.ready = [this] { return serving.load() ? std::string() : readiness.WaitsFor(); };
  checks.degraded = [this]() -> std::string {
    if (follower == nullptr || !follower->failing()) return "";
    return absl::StrCat("the database does not answer; names are ",
                        absl::ToInt64Seconds(follower->Age()),
                        " seconds old, and nothing can be built or changed");
  };
  return checks;
}

absl::Status Server::Parts::LearnNames() {
  const absl::Status learned = known_names ? known_names->Learn() : registry.CatchUp();
  if (learned.ok()) readiness.NamesAreKnown();
  // The follower will learn them.
  return known_names && absl::IsUnavailable(learned) ? absl::OkStatus() : learned;
}

void Server::Parts::FollowCatalog() {
  if (changes == nullptr) return;
  follower = std::make_unique<CatalogFollower>(
      registry, std::move(changes), metrics.registry().catalog_errors, [this](bool caught_up) {
        if (caught_up) readiness.NamesAreKnown();
        if (known_names) known_names->SaveSometimes();
      });
}

void Server::Parts::WatchLoops() {
  metrics.WatchGauge("phimap_loops", "Event loops (--io_threads).",
                     [this] { return static_cast<double>(loops.count()); });
  metrics.WatchCounter("phimap_loop_busy_seconds_total",
                       "Seconds that event loops spent working; its rate divided by "
                       "phimap_loops is the fraction of time that they are busy.",
                       [this] { return absl::ToDoubleSeconds(loops.BusyTime()); });
  metrics.WatchGauge("phimap_loop_longest_gap_seconds",
                     "Longest time between two polls of an event loop, in the last 15 to 30 "
                     "seconds or until now. Between two polls, no requests are read.",
                     [this] { return absl::ToDoubleSeconds(loops.LongestGap()); });
  metrics.WatchCounter("phimap_memory_failures_total",
                       "Times that an event loop found no memory for its work; the call or the "
                       "connection concerned was ended.",
                       [this] { return static_cast<double>(loops.MemoryFailures()); });
}

void Server::Parts::WatchStore() {
  metrics.WatchGauge(
      "phimap_catalog_age_seconds",
      "Seconds since this server last successfully asked the database for other servers' changes: "
      "at most about 0.25 while the database answers, 0 with SQLite.",
      [this] { return follower == nullptr ? 0 : absl::ToDoubleSeconds(follower->Age()); });
  metrics.WatchCounter(
      "phimap_history_changes_total",
      "Times that the store turned out to lack changes that this server knew, because it was "
      "restored or failed over.",
      [this] { return static_cast<double>(registry.history_breaks()); });
  metrics.WatchLabeledGauge(
      "phimap_catalog_revision",
      "Number of the last change of names that this server knows. It never falls, unless the store "
      "was restored.",
      "store", [this]() -> std::optional<Metrics::Labeled> {
        std::string store_id = store_facts ? store_facts().store_id : "";
        const int64_t revision = registry.revision().number;
        if (store_id.empty() || revision == 0) return std::nullopt;
        return Metrics::Labeled{std::move(store_id), static_cast<double>(revision)};
      });
  metrics.WatchGauge(
      "phimap_database_standbys", "Connected standbys of the database; 0 with SQLite.",
      [this] { return store_facts ? static_cast<double>(store_facts().standbys) : 0; });
  metrics.WatchGauge(
      "phimap_synchronous_standby_missing",
      "1 if the database names a synchronous standby, but none is connected: changes then wait.",
      [this] { return store_facts && store_facts().synchronous_standby_missing ? 1 : 0; });
  metrics.WatchCounter(
      "phimap_crashes_total",
      "Times that a server with this data ended without shutting down; kept on disk.",
      [this] { return crash_record ? static_cast<double>(crash_record->crashes()) : 0; });
}

void Server::Parts::WatchUpkeep() {
  const auto upkept = [this](auto read_count) {
    return [this, read_count]() -> double {
      return upkeep == nullptr ? 0 : static_cast<double>(read_count(*upkeep));
    };
  };
  metrics.WatchCounter(
      "phimap_gc_removed_total",
      "Artifacts that this server removed because no version used them any more.",
      upkept([](const StoreUpkeep& store) { return store.counts().removed.load(); }));
  metrics.WatchCounter("phimap_scrub_bytes_total",
                       "Bytes of artifacts that were read and compared with their digests.",
                       upkept([](const StoreUpkeep& store) { return store.scrubber().bytes(); }));
  metrics.WatchGauge("phimap_damaged_artifacts",
                     "Damaged or missing artifacts of versions, as of the last check.",
                     upkept([](const StoreUpkeep& store) { return store.scrubber().damaged(); }));
  metrics.WatchGauge(
      "phimap_store_clock_distrusted",
      "1 for an hour after the store's clock jumped ahead by over a minute; nothing expires, is "
      "pruned or taken over meanwhile.",
      upkept([](const StoreUpkeep& store) { return store.clock().trusted() ? 0 : 1; }));
  metrics.WatchCounter("phimap_store_clock_jumps_total",
                       "Jumps of the store's clock by over a minute beyond this server's.",
                       upkept([](const StoreUpkeep& store) { return store.clock().jumps(); }));
  metrics.WatchCounter(
      "phimap_upkeep_errors_total",
      "Failed garbage collections and artifact checks, damage included.",
      upkept([](const StoreUpkeep& store) { return store.counts().errors.load(); }));
}

void Server::Parts::WatchCache() {
  const auto read = [this](int64_t ArtifactCache::Statistics::*field) {
    return [this, field]() -> double {
      return cache == nullptr ? 0 : static_cast<double>(cache->statistics().*field);
    };
  };
  metrics.WatchGauge("phimap_cache_bytes", "Bytes of the copies in --cache_dir.",
                     read(&ArtifactCache::Statistics::bytes));
  metrics.WatchCounter("phimap_cache_hits_total", "Artifacts read from --cache_dir.",
                       read(&ArtifactCache::Statistics::hits));
  metrics.WatchCounter("phimap_cache_misses_total", "Artifacts fetched from the database.",
                       read(&ArtifactCache::Statistics::misses));
  metrics.WatchCounter("phimap_cache_evictions_total",
                       "Copies removed from --cache_dir to free space.",
                       read(&ArtifactCache::Statistics::evictions));
  metrics.WatchCounter("phimap_cache_damaged_total",
                       "Copies in --cache_dir that were damaged and fetched again.",
                       read(&ArtifactCache::Statistics::damaged));
  metrics.WatchCounter("phimap_cache_unwritten_total",
                       "Artifacts that could not be copied to --cache_dir.",
                       read(&ArtifactCache::Statistics::unwritten));
}

absl::Status Server::Parts::CopyAudit(const ServerOptions& options) {
  if (options.audit_log.empty()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(audit_file, AuditFile::Open(options.audit_log, *store, logger));
  metrics.WatchGauge("phimap_audit_log_writable", "1 while --audit_log can be written, else 0.",
                     [this] { return audit_file->writable() ? 1.0 : 0.0; });
  return absl::OkStatus();
}

void Server::Parts::ShowLimits(const ServerOptions& options) {
  metrics.SetLimits({.compute_threads = threads,
                     .memory_bytes = options.memory_bytes,
                     .live_bytes = options.max_live_bytes,
                     .build_memory_bytes = options.build_memory_bytes,
                     .builds = options.max_builds});
}

absl::Status Server::Parts::ServeMetrics(const ServerOptions& options) {
  metrics.SetBuildInfo(PHIMAP_VERSION, BlasCoreName(), EngineTargetName());
  ShowLimits(options);
  if (options.on_postgres()) {
    metrics.WatchDisk("cache", options.cache_dir);
  } else {
    metrics.WatchDisk("store", options.data_dir);
  }
  WatchStore();
  WatchUpkeep();
  WatchCache();
  WatchLoops();
  metrics.WatchLog(logger);
  if (options.http.empty()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(
      http, ProbeEndpoint::Listen(options.http, metrics.collectable(), logger, Checks(),
                                  HostNames(options.http_hosts), options.header_proxies));
  http_address = WithPort(options.http, http->port());
  return absl::OkStatus();
}

absl::Status Server::Parts::ServeCalls(const ServerOptions& options) {
  readiness.CallsAreAccepted();
  PHIMAP_ASSIGN_OR_RETURN(api, ApiListener::Listen(
                                   options, dispatcher,
                                   [this](EventLoop& loop) {
                                     rows.AddLoop(loop);
                                     loops.Add(loop);
                                   },
                                   metrics.connections(), logger));
  if (!options.tls.client_crl.empty()) {
    metrics.WatchGauge("phimap_tls_crl_not_after_seconds",
                       "When the first list of --tls_client_crl ends, in seconds since 1970.",
                       [this] { return api->revocations_end(); });
  }
  return absl::OkStatus();
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      OpenedStore store, const Logger& logger,
                                                      Hooks hooks) {
  std::unique_ptr<TokenFile> tokens;
  if (!options.token_file.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(tokens, TokenFile::Open(options.token_file, logger));
  }
  PHIMAP_ASSIGN_OR_RETURN(std::string kernel_authorities, KernelAuthorities(options));
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<CollectorClient> collector, TraceCollector(options));
  // From here on the server shuts down properly after any failure.
  auto server = absl::WrapUnique(
      new Server(std::make_unique<Parts>(options, std::move(tokens), std::move(kernel_authorities),
                                         std::move(collector), std::move(store), logger, hooks)));
  PHIMAP_RETURN_IF_ERROR(server->parts_->CopyAudit(options));
  PHIMAP_RETURN_IF_ERROR(server->parts_->LearnNames());
  server->parts_->FollowCatalog();
  server->parts_->mapping_service.KeepLifetimes();
  PHIMAP_RETURN_IF_ERROR(server->parts_->ServeMetrics(options));
  PHIMAP_RETURN_IF_ERROR(server->parts_->ServeCalls(options));
  return server;
}

Server::~Server() { Shutdown(absl::ZeroDuration()); }

const std::string& Server::grpc_address() const { return parts_->api->address(); }

const std::string& Server::http_address() const { return parts_->http_address; }

const std::string& Server::api_http_address() const { return parts_->api->http_address(); }

void Server::Follow(const ServerOptions& options) {
  Parts& parts = *parts_;
  parts.memory.SetMaxBytes(options.memory_bytes);
  parts.callers.SetMaxCalls(options.max_calls_per_caller);
  parts.api->SetMaxConnections(options.max_connections, options.max_connections_per_host);
  parts.registry.SetMaxLiveBytes(options.max_live_bytes);
  parts.builds.SetLimits(options.max_builds, options.build_memory_bytes,
                         options.training_disk_bytes);
  parts.ShowLimits(options);
}

void Server::CountReloadFailure() {
  parts_->metrics.connections().config_reload_failures->Increment();
}

void Server::EndIdleBuilds() { parts_->builds.EndIdleBuilds(); }

void Server::Shutdown(absl::Duration drain_time) {
  Parts& parts = *parts_;
  if (std::exchange(parts.shut_down, true)) return;
  // From here on the server is not ready, and nothing is loaded in the background.
  parts.readiness.Stop();
  parts.SetServing(false);
  const auto now = std::chrono::steady_clock::now();
  const auto deadline = now + absl::ToChronoMilliseconds(drain_time);
  const auto lame_duck = std::min(deadline, now + parts.lame_duck);
  // Ends calls that wait for a kernel service at the deadline, so that a hanging service does not
  // hold up the drain.
  DelayedStop kernels(parts.ending, parts.kernels, deadline);
  // Waits for builds, including those that no client follows, in parallel with calls.
  ShutdownStep builds(parts.ending, [&] { parts.builds.Drain(deadline); });
  if (parts.api != nullptr) {
    parts.api->Shutdown(lame_duck, deadline, [&parts] { parts.health.EndWatches(); });
  }
  builds.Await();
  parts.scheduler.Drain();
  if (parts.known_names != nullptr) parts.known_names->Save();
}

}  // namespace phimap
