#include "server/server.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/linalg/blas.h"
#include "core/plan/engine.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/auth/access_control.h"
#include "server/auth/file_watch.h"
#include "server/auth/tls_files.h"
#include "server/auth/token_file.h"
#include "server/build/alias_certificates.h"
#include "server/build/build_manager.h"
#include "server/grpc_listener.h"
#include "server/kernel/kernel_services.h"
#include "server/listen_address.h"
#include "server/observe/http_endpoint.h"
#include "server/observe/metrics.h"
#include "server/registry/version_registry.h"
#include "server/rpc/evaluation_service.h"
#include "server/rpc/inference_service.h"
#include "server/rpc/mapping_service.h"
#include "server/rpc/transform_service.h"
#include "server/schedule/compute_pool.h"
#include "server/schedule/cpu_budget.h"
#include "server/schedule/task_pool.h"
#include "server/schedule/transform_scheduler.h"
#include "server/store/metered_store.h"
#include "server/sync/mutex.h"

namespace phimap {
namespace {

constexpr int kStoreThreads = 2;
constexpr int kMaxQueuedStoreCalls = 512;
// How long a build lets Transforms go first before each tile. On a server that is never idle,
// builds get on all the same: a tile for every such wait.
constexpr absl::Duration kBuildYield = absl::Milliseconds(20);
// For calls to hear that their build was cancelled before the calls themselves are.
constexpr auto kCancelGrace = std::chrono::seconds(1);

int ComputeThreads(const ServerOptions& options) {
  return options.compute_threads > 0 ? options.compute_threads : CpuBudgetOfThisProcess();
}

TransformScheduler::Options SchedulerOptions(const ServerOptions& options,
                                             const Server::Hooks& hooks) {
  TransformScheduler::Options out;
  out.queue_bytes = options.queue_bytes;
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
                                         AliasCertificates& certificates) {
  VersionRegistry::Options out;
  out.kernels = &kernels;
  out.alias_changed = [&certificates](VersionRegistry& registry, absl::string_view mapping,
                                      absl::string_view alias) {
    certificates.Refresh(registry, mapping, alias);
  };
  out.max_live_bytes = options.max_live_bytes;
  return out;
}

// Lets Transforms pass, on threads that work for long.
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
  out.idle_timeout = absl::Seconds(options.build_idle_seconds);
  // One core is left to Transform.
  out.compute_threads = std::max(1, threads - 1);
  out.ingest_threads = out.compute_threads;
  out.yield = BuildYield(hooks, scheduler);
  if (hooks.build_clock) out.now = hooks.build_clock;
  return out;
}

std::optional<Role> CertificateRole(const ServerOptions& options) {
  if (options.tls.client_ca.empty()) return std::nullopt;
  return options.client_certificate_role;
}

// Says when the certificate expires, which nobody should learn from their clients, or returns what
// is wrong with the files of TLS.
absl::Status LookAtTls(const ServerOptions& options, const Logger& logger) {
  if (options.tls.empty()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(const absl::Time expires, CheckTlsFiles(options.tls));
  logger.Log(expires < absl::Now() ? LogLevel::kWarning : LogLevel::kInfo, "tls",
             {{"certificate", options.tls.certificate},
              {"expires", absl::FormatTime(absl::RFC3339_sec, expires, absl::UTCTimeZone())},
              {"client_certificates", options.tls.client_ca.empty() ? "not asked" : "required"}});
  return absl::OkStatus();
}

// gRPC reads the files of TLS again by itself, whatever is in them.
std::unique_ptr<FileWatch> WatchTls(const ServerOptions& options, const Logger& logger) {
  if (options.tls.empty()) return nullptr;
  std::vector<std::string> paths = {options.tls.certificate, options.tls.key};
  if (!options.tls.client_ca.empty()) paths.push_back(options.tls.client_ca);
  auto watch = std::make_unique<FileWatch>(std::move(paths), [&logger, options] {
    const absl::Status wrong = LookAtTls(options, logger);
    if (wrong.ok()) return;
    logger.Log(LogLevel::kError, "tls_files_wrong",
               {{"error", std::string(wrong.message())},
                {"effect", "connections fail that are not made yet, until the files are right"}});
  });
  watch->Start();
  return watch;
}

// Empty: those of the system.
absl::StatusOr<std::string> KernelAuthorities(const ServerOptions& options) {
  if (options.kernel_service_ca.empty()) return std::string();
  return ReadAuthorities("kernel_service_ca", options.kernel_service_ca);
}

RpcLimits Limits(const ServerOptions& options) {
  RpcLimits limits;
  limits.max_message_bytes = options.max_message_bytes;
  limits.answer_bytes = options.queue_bytes;
  return limits;
}

}  // namespace

namespace {

// Stops kernel services at a time, or when it goes.
class DelayedStop {
 public:
  DelayedStop(KernelServices& kernels, std::chrono::steady_clock::time_point at)
      : kernels_(kernels), thread_([this, at] {
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
    thread_.join();
  }
  DelayedStop(const DelayedStop&) = delete;
  DelayedStop& operator=(const DelayedStop&) = delete;

 private:
  KernelServices& kernels_;
  Mutex mutex_;
  CondVar changed_;
  bool now_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

// In the order of dependence: a part uses only those above it, and is destroyed before them.
struct Server::Parts {
  Parts(const ServerOptions& options, std::unique_ptr<TokenFile> tokens,
        std::string kernel_authorities, std::unique_ptr<Store> the_store, const Logger& the_logger,
        const Hooks& hooks)
      : logger(the_logger),
        access(std::move(tokens), CertificateRole(options)),
        tls_watch(WatchTls(options, logger)),
        store(std::make_unique<MeteredStore>(std::move(the_store), metrics.store())),
        threads(ComputeThreads(options)),
        scheduler(SchedulerOptions(options, hooks), metrics.transform()),
        kernels(options.kernel_services, KernelOptions(options, std::move(kernel_authorities)),
                metrics.kernels()),
        registry(RegistryOptions(options, kernels, alias_certificates), *store, metrics.registry(),
                 logger),
        builds(BuildOptions(options, threads, hooks, scheduler, kernels), *store, registry,
               store_pool, metrics.build(), logger),
        limits(Limits(options)),
        transform_service(transform_environment, access, metrics),
        mapping_service(*store, registry, builds, store_pool, access, metrics, logger),
        evaluation_service({registry, *store, builds.memory(), builds.idle_timeout(),
                            BuildYield(hooks, scheduler), logger},
                           access, metrics),
        inference_service(transform_environment, *store, store_pool, serving, PHIMAP_VERSION,
                          access, metrics),
        compute_pool(threads, [this] { scheduler.RunWorker(); }) {}

  absl::Status ServeMetrics(const ServerOptions& options);
  absl::Status ServeCalls(const ServerOptions& options);

  const Logger& logger;
  const AccessControl access;
  const std::unique_ptr<FileWatch> tls_watch;
  Metrics metrics;
  const std::unique_ptr<Store> store;
  const int threads;
  TaskPool store_pool{"store calls", kStoreThreads, kMaxQueuedStoreCalls, metrics.store().waiting};
  AliasCertificates alias_certificates{metrics.certificates()};
  TransformScheduler scheduler;
  KernelServices kernels;
  VersionRegistry registry;
  BuildManager builds;
  const RpcLimits limits;
  AnswerBudget answers{limits.answer_bytes, metrics.transform(), scheduler.room()};
  const TransformEnvironment transform_environment{registry, scheduler, answers, limits, logger};
  TransformService transform_service;
  MappingService mapping_service;
  EvaluationService evaluation_service;
  std::atomic<bool> serving{false};
  InferenceService inference_service;
  ComputePool compute_pool;

  std::unique_ptr<HttpEndpoint> http;
  std::unique_ptr<GrpcListener> grpc;
  std::string http_address;
  bool shut_down = false;
};

absl::Status Server::Parts::ServeMetrics(const ServerOptions& options) {
  metrics.SetBuildInfo(PHIMAP_VERSION, BlasCoreName(), EngineTargetName());
  metrics.SetLimits({.compute_threads = threads,
                     .queue_bytes = options.queue_bytes,
                     .live_bytes = options.max_live_bytes,
                     .build_memory_bytes = options.build_memory_bytes,
                     .builds = options.max_builds});
  metrics.WatchDisk(options.data_dir);
  if (options.http.empty()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(http, HttpEndpoint::Listen(options.http, metrics.collectable()));
  http_address = WithPort(options.http, http->port());
  return absl::OkStatus();
}

absl::Status Server::Parts::ServeCalls(const ServerOptions& options) {
  PHIMAP_ASSIGN_OR_RETURN(
      grpc, GrpcListener::Listen(
                options,
                {{&transform_service, v1::TransformService::service_full_name()},
                 {&mapping_service, v1::MappingService::service_full_name()},
                 {&evaluation_service, v1::EvaluationService::service_full_name()},
                 {&inference_service, inference::GRPCInferenceService::service_full_name()}},
                serving, metrics.connections(), logger));
  return absl::OkStatus();
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      std::unique_ptr<Store> store,
                                                      const Logger& logger, Hooks hooks) {
  PHIMAP_RETURN_IF_ERROR(LookAtTls(options, logger));
  std::unique_ptr<TokenFile> tokens;
  if (!options.token_file.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(tokens, TokenFile::Open(options.token_file, logger));
  }
  PHIMAP_ASSIGN_OR_RETURN(std::string kernel_authorities, KernelAuthorities(options));
  // From here on the server shuts down properly, whatever fails.
  auto server = absl::WrapUnique(new Server(std::make_unique<Parts>(
      options, std::move(tokens), std::move(kernel_authorities), std::move(store), logger, hooks)));
  PHIMAP_RETURN_IF_ERROR(server->parts_->ServeMetrics(options));
  PHIMAP_RETURN_IF_ERROR(server->parts_->ServeCalls(options));
  return server;
}

Server::~Server() { Shutdown(absl::ZeroDuration()); }

const std::string& Server::grpc_address() const { return parts_->grpc->address(); }

const std::string& Server::http_address() const { return parts_->http_address; }

void Server::EndIdleBuilds() { parts_->builds.EndIdleBuilds(); }

void Server::Shutdown(absl::Duration drain_time) {
  Parts& parts = *parts_;
  if (std::exchange(parts.shut_down, true)) return;
  if (parts.grpc != nullptr) parts.grpc->StopHealth();
  const auto drain = absl::ToChronoMilliseconds(drain_time);
  // Calls that wait for a kernel end with it: a service that hangs must not hold the drain up.
  DelayedStop kernels(parts.kernels, std::chrono::steady_clock::now() + drain);
  // Builds that no client follows are waited for beside the calls.
  std::thread builds([&] { parts.builds.Drain(std::chrono::steady_clock::now() + drain); });
  if (parts.grpc != nullptr) {
    parts.grpc->Shutdown(std::chrono::system_clock::now() + drain + kCancelGrace);
  }
  builds.join();
  parts.scheduler.Drain();
}

}  // namespace phimap
