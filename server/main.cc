// phimapd: parses the command line, opens the store, and serves until a signal. `phimapd admin`
// looks after a store instead.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/engine/engine.h"
#include "core/linalg/blas.h"
#include "google/protobuf/stubs/logging.h"
#include "server/kernel_client/grpc_log.h"
#include "server/memory/process_memory.h"
#include "server/observe/log.h"
#include "server/open_store.h"
#include "server/options.h"
#include "server/process.h"
#include "server/server.h"

namespace phimap {
namespace {

int Refuse(const char* what, const absl::Status& status) {
  std::fprintf(stderr, "phimapd: %s: %s\n", what, std::string(status.message()).c_str());
  return static_cast<int>(ServerExitCode::kFailed);
}

void LogStart(const Logger& logger, const ServerOptions& options, int64_t file_limit) {
  logger.Log(LogLevel::kInfo, "starting",
             {{"blas_core", BlasCoreName()},
              {"engine_target", EngineTargetName()},
              {"file_limit", absl::StrCat(file_limit)},
              {"cgroup_memory_bytes", options.cgroup_memory_bytes.has_value()
                                          ? absl::StrCat(*options.cgroup_memory_bytes)
                                          : "none"},
              {"max_live_bytes", absl::StrCat(options.max_live_bytes)},
              {"memory_bytes", absl::StrCat(options.memory_bytes)},
              {"build_memory_bytes", absl::StrCat(options.build_memory_bytes)},
              {"max_connections", absl::StrCat(options.max_connections)}});
}

// Warns if the server could take more memory than its cgroup allows, which would kill it.
void WarnOfMemoryBeyondCgroup(const Logger& logger, const ServerOptions& options) {
  const int64_t worst = WorstCaseBytes(MemoryLimitsOf(options));
  if (!options.cgroup_memory_bytes.has_value() || worst <= *options.cgroup_memory_bytes) return;
  logger.Log(LogLevel::kWarning, "memory_beyond_cgroup",
             {{"worst_case_bytes", absl::StrCat(worst)},
              {"cgroup_memory_bytes", absl::StrCat(*options.cgroup_memory_bytes)},
              {"help",
               "the flags allow more memory than the container has, so it may be killed; lower "
               "--max_live_bytes, --memory_bytes, --build_memory_bytes or --max_connections, or "
               "leave them out, or raise the container's limit"}});
}

// Warns if the memory is too small for the largest message, whose bytes, parsed form and answer
// take three times its size. Messages of that size are then admitted one at a time, even beyond the
// limit. So every call is eventually answered, but the memory may exceed the limit.
void WarnOfSmallMemory(const Logger& logger, const ServerOptions& options) {
  if (options.memory_bytes / 3 >= options.max_message_bytes) return;
  logger.Log(LogLevel::kWarning, "memory_bytes_below_three_messages",
             {{"memory_bytes", absl::StrCat(options.memory_bytes)},
              {"max_message_bytes", absl::StrCat(options.max_message_bytes)},
              {"help",
               "--memory_bytes is too small for the largest messages; raise it to at least three "
               "times --max_message_bytes, or lower --max_message_bytes"}});
}

// Prints the only line on stdout. Scripts wait for it and read the addresses from it.
void AnnounceReady(const ServerOptions& options, const Server& server) {
  const std::string unix_address =
      options.unix_listen.empty() ? "" : absl::StrCat(" unix=", options.unix_listen);
  std::printf("phimapd ready: grpc=%s http=%s%s\n", server.grpc_address().c_str(),
              server.http_address().empty() ? "none" : server.http_address().c_str(),
              unix_address.c_str());
  std::fflush(stdout);
}

int Run(const ServerOptions& options) {
  BlockStopSignals();
  IgnoreBrokenPipesAndHangups();
  SwitchLockDebuggingOff();
  ReturnLargeBuffers();
  const Logger logger(options.log_level, options.log_format);
  const GrpcLog grpc_log(logger);
  // Without this, protobuf would write a line to stderr for each string that is not UTF-8, and
  // would block while nobody reads stderr.
  google::protobuf::SetLogHandler(nullptr);
  const int64_t file_limit = RaiseFileLimit();
  UseOneBlasThread();
  LogStart(logger, options, file_limit);
  WarnOfMemoryBeyondCgroup(logger, options);
  WarnOfSmallMemory(logger, options);
  absl::StatusOr<OpenedStore> store = OpenStore(options, logger);
  if (!store.ok()) return Refuse("cannot open the store", store.status());
  absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(options, *std::move(store), logger);
  if (!server.ok()) return Refuse("cannot start", server.status());
  AnnounceReady(options, **server);
  const int signal = WaitForStopSignal();
  logger.Log(
      LogLevel::kInfo, "draining",
      {{"signal", absl::StrCat(signal)}, {"at_most_seconds", absl::StrCat(options.drain_seconds)}});
  (*server)->Shutdown(absl::Seconds(options.drain_seconds));
  server->reset();
  logger.Log(LogLevel::kInfo, "stopped", {});
  return static_cast<int>(ServerExitCode::kStopped);
}

}  // namespace
}  // namespace phimap

int main(int argc, char** argv) {
  // If descriptor 0, 1 or 2 were closed, a file of the store could get that number. Output for
  // stdout or stderr would then be written into this file.
  while (true) {
    const int descriptor = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (descriptor > 2) close(descriptor);
    if (descriptor < 0 || descriptor > 2) break;
  }
  if (argc > 1 && std::strcmp(argv[1], "admin") == 0) return phimap::RunAdmin(argc - 1, argv + 1);
  const std::variant<phimap::ServerOptions, int> options = phimap::ParseOptions(argc, argv);
  if (const int* exit_code = std::get_if<int>(&options)) return *exit_code;
  return phimap::Run(std::get<phimap::ServerOptions>(options));
}
