#include "server/server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/linalg/blas.h"
#include "core/plan/engine.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/build/build_manager.h"
#include "server/listen_address.h"
#include "server/observe/http_endpoint.h"
#include "server/observe/metrics.h"
#include "server/registry/version_registry.h"
#include "server/rpc/evaluation_service.h"
#include "server/rpc/mapping_service.h"
#include "server/rpc/transform_service.h"
#include "server/schedule/compute_pool.h"
#include "server/schedule/cpu_budget.h"
#include "server/schedule/task_pool.h"
#include "server/schedule/transform_scheduler.h"

namespace phimap {
namespace {

constexpr int kStoreThreads = 2;
constexpr int kMaxQueuedStoreCalls = 512;
// How long a build lets Transforms go first before each tile. On a server that is never idle,
// builds get on all the same: a tile for every such wait.
constexpr absl::Duration kBuildYield = absl::Milliseconds(20);
// For calls to hear that their build was cancelled before the calls themselves are.
constexpr auto kCancelGrace = std::chrono::seconds(1);

constexpr const char* kServices[] = {"phimap.v1.MappingService", "phimap.v1.TransformService",
                                     "phimap.v1.EvaluationService"};

int ComputeThreads(const ServerOptions& options) {
  return options.compute_threads > 0 ? options.compute_threads : CpuBudgetOfThisProcess();
}

TransformScheduler::Options SchedulerOptions(const ServerOptions& options,
                                             const Server::Hooks& hooks,
                                             prometheus::Registry& registry) {
  TransformScheduler::Options out;
  out.queue_bytes = options.queue_bytes;
  out.batch_requests = &prometheus::BuildHistogram()
                            .Name("phimap_transform_batch_requests")
                            .Help("Requests that were computed in one pass.")
                            .Register(registry)
                            .Add({}, prometheus::Histogram::BucketBoundaries{1, 2, 4, 8, 16, 32});
  if (hooks.transform_clock) out.now = hooks.transform_clock;
  return out;
}

VersionRegistry::Options RegistryOptions(const ServerOptions& options) {
  VersionRegistry::Options out;
  out.max_live_bytes = options.max_live_bytes;
  return out;
}

BuildManager::Options BuildOptions(const ServerOptions& options, int threads,
                                   const Server::Hooks& hooks, TransformScheduler& scheduler) {
  BuildManager::Options out;
  out.max_builds = options.max_builds;
  out.memory_bytes = options.build_memory_bytes;
  out.idle_timeout = absl::Seconds(options.build_idle_seconds);
  // One core is left to Transform.
  out.compute_threads = std::max(1, threads - 1);
  out.ingest_threads = out.compute_threads;
  out.yield = [&scheduler] { scheduler.WaitWhilePending(kBuildYield); };
  if (hooks.build_clock) out.now = hooks.build_clock;
  if (hooks.build_yield) out.yield = hooks.build_yield;
  return out;
}

RpcLimits Limits(const ServerOptions& options) {
  RpcLimits limits;
  limits.max_message_bytes = options.max_message_bytes;
  limits.answer_bytes = options.queue_bytes;
  return limits;
}

}  // namespace

// In the order of dependence: a part uses only those above it, and is destroyed before them.
struct Server::Parts {
  Parts(const ServerOptions& options, std::unique_ptr<Store> the_store, const Logger& the_logger,
        const Hooks& hooks)
      : logger(the_logger),
        store(std::move(the_store)),
        threads(ComputeThreads(options)),
        scheduler(SchedulerOptions(options, hooks, *metrics.collectable()), metrics.transform()),
        registry(RegistryOptions(options), *store, metrics.registry(), logger),
        builds(BuildOptions(options, threads, hooks, scheduler), *store, registry, store_pool,
               metrics.build(), logger),
        transform_service(registry, scheduler, Limits(options), metrics, logger),
        mapping_service(*store, registry, builds, store_pool, metrics, logger),
        evaluation_service(metrics, logger),
        compute_pool(threads, [this] { scheduler.RunWorker(); }) {}

  absl::Status ServeMetrics(const ServerOptions& options);
  absl::Status ServeCalls(const ServerOptions& options);

  const Logger& logger;
  Metrics metrics;
  const std::unique_ptr<Store> store;
  const int threads;
  TaskPool store_pool{"store calls", kStoreThreads, kMaxQueuedStoreCalls};
  TransformScheduler scheduler;
  VersionRegistry registry;
  BuildManager builds;
  TransformService transform_service;
  MappingService mapping_service;
  EvaluationService evaluation_service;
  ComputePool compute_pool;

  std::unique_ptr<HttpEndpoint> http;
  std::unique_ptr<grpc::Server> grpc;
  std::string grpc_address;
  std::string http_address;
  bool shut_down = false;
};

namespace {

// Limits and safety of the listener itself.
void Configure(const ServerOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  builder.SetMaxSendMessageSize(static_cast<int>(options.max_message_bytes));
  // A megabyte of gzip becomes a gigabyte before any limit is looked at.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  // Two servers on one port would share its calls silently.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

void EnablePlugins() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
}

// Names that gRPC takes are "unix:" and a path.
constexpr absl::string_view kUnix = "unix:";

// gRPC would remove whatever socket it finds at the path, even one that another server serves: its
// clients would be with us from then on. So only what nobody answers at is left to it.
// FAILED_PRECONDITION for a socket in use and for a file that is no socket, INVALID_ARGUMENT for a
// path longer than a socket's name can be.
absl::Status CheckSocketPath(const std::string& path) {
  sockaddr_un name{};
  if (path.size() >= sizeof(name.sun_path)) {
    return MakeError(absl::StatusCode::kInvalidArgument, "TOO_LONG", "unix_listen",
                     absl::StrCat("a socket's path has at most ", sizeof(name.sun_path) - 1,
                                  " bytes, got ", path.size()),
                     {{"limit", absl::StrCat(sizeof(name.sun_path) - 1)}});
  }
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return absl::OkStatus();
  const auto in_use = [&path](const char* why) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "CANNOT_LISTEN", "unix_listen",
                     absl::StrCat("cannot listen on ", path, ": ", why), {{"address", path}});
  };
  if (!S_ISSOCK(found.st_mode)) return in_use("a file that is no socket is there");
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int result = connect(probe, reinterpret_cast<const sockaddr*>(&name), sizeof(name));
  const bool refused = result != 0 && errno == ECONNREFUSED;
  close(probe);
  return refused ? absl::OkStatus() : in_use("another server listens there");
}

// Files made while it lives belong to this user alone. The mask is the whole process's, so it lives
// for the moment of binding; a mode set afterwards would come too late for a quick client.
class PrivateFiles {
 public:
  PrivateFiles() : before_(umask(0077)) {}
  ~PrivateFiles() { umask(before_); }
  PrivateFiles(const PrivateFiles&) = delete;
  PrivateFiles& operator=(const PrivateFiles&) = delete;

 private:
  const mode_t before_;
};

// Both ways to name a socket.
std::vector<std::string> SocketPaths(const ServerOptions& options) {
  std::vector<std::string> paths;
  if (absl::StartsWith(options.listen, kUnix)) paths.push_back(options.listen.substr(kUnix.size()));
  if (!options.unix_listen.empty()) paths.push_back(options.unix_listen);
  return paths;
}

absl::Status CannotListen(const std::string& address) {
  const char* const hint = absl::StartsWith(address, kUnix)
                               ? "does its folder exist, and may this user write there?"
                               : "is the port taken, or the address not of this machine?";
  return MakeError(absl::StatusCode::kFailedPrecondition, "CANNOT_LISTEN", "listen",
                   absl::StrCat("cannot listen on ", address, "; ", hint), {{"address", address}});
}

void SetServing(grpc::Server& server, bool serving) {
  grpc::HealthCheckServiceInterface* const health = server.GetHealthCheckService();
  for (const char* service : kServices) health->SetServingStatus(service, serving);
  health->SetServingStatus("", serving);
}

}  // namespace

absl::Status Server::Parts::ServeMetrics(const ServerOptions& options) {
  metrics.SetBuildInfo(PHIMAP_VERSION, BlasCoreName(), EngineTargetName(), threads);
  if (options.http.empty()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(http, HttpEndpoint::Listen(options.http, metrics.collectable()));
  http_address = WithPort(options.http, http->port());
  return absl::OkStatus();
}

absl::Status Server::Parts::ServeCalls(const ServerOptions& options) {
  EnablePlugins();
  grpc::ServerBuilder builder;
  Configure(options, builder);
  int port = 0;
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
  if (!options.unix_listen.empty()) {
    builder.AddListeningPort(absl::StrCat(kUnix, options.unix_listen),
                             grpc::InsecureServerCredentials());
  }
  builder.RegisterService(&transform_service);
  builder.RegisterService(&mapping_service);
  builder.RegisterService(&evaluation_service);
  for (const std::string& path : SocketPaths(options)) {
    PHIMAP_RETURN_IF_ERROR(CheckSocketPath(path));
  }
  {
    const PrivateFiles sockets;
    grpc = builder.BuildAndStart();
  }
  if (port == 0) return CannotListen(options.listen);
  if (grpc == nullptr) return CannotListen(absl::StrCat(kUnix, options.unix_listen));
  for (const std::string& path : SocketPaths(options)) chmod(path.c_str(), 0600);
  grpc_address = WithPort(options.listen, port);
  SetServing(*grpc, true);
  return absl::OkStatus();
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      std::unique_ptr<Store> store,
                                                      const Logger& logger, Hooks hooks) {
  PHIMAP_RETURN_IF_ERROR(CheckReachable("listen", options.listen, options.insecure));
  if (!options.http.empty()) {
    PHIMAP_RETURN_IF_ERROR(CheckReachable("http", options.http, options.insecure));
  }
  // From here on the server shuts down properly, whatever fails.
  auto server = absl::WrapUnique(
      new Server(std::make_unique<Parts>(options, std::move(store), logger, hooks)));
  PHIMAP_RETURN_IF_ERROR(server->parts_->ServeMetrics(options));
  PHIMAP_RETURN_IF_ERROR(server->parts_->ServeCalls(options));
  return server;
}

Server::~Server() { Shutdown(absl::ZeroDuration()); }

const std::string& Server::grpc_address() const { return parts_->grpc_address; }

const std::string& Server::http_address() const { return parts_->http_address; }

void Server::EndIdleBuilds() { parts_->builds.EndIdleBuilds(); }

void Server::Shutdown(absl::Duration drain_time) {
  Parts& parts = *parts_;
  if (std::exchange(parts.shut_down, true)) return;
  if (parts.grpc != nullptr) SetServing(*parts.grpc, false);
  const auto drain = absl::ToChronoMilliseconds(drain_time);
  // Builds that no client follows are waited for beside the calls.
  std::thread builds([&] { parts.builds.Drain(std::chrono::steady_clock::now() + drain); });
  if (parts.grpc != nullptr) {
    parts.grpc->Shutdown(std::chrono::system_clock::now() + drain + kCancelGrace);
  }
  builds.join();
  parts.scheduler.Drain();
}

}  // namespace phimap
