// phimapd: parses the command line, opens the store, and serves until a signal. `phimapd admin`
// looks after a store instead.

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/engine/engine.h"
#include "core/linalg/blas.h"
#include "google/protobuf/stubs/logging.h"
#include "server/kernel_client/grpc_log.h"
#include "server/observe/log.h"
#include "server/observe/process_memory.h"
#include "server/open_store.h"
#include "server/options.h"
#include "server/server.h"

namespace phimap {

namespace {

// Settings of the whole process: its limits and its signals.
//
// Raises the soft limit of open files to the hard limit, and returns it.
int64_t RaiseFileLimit();

// Switches off Abseil's deadlock detection, as gRPC's own releases do. In Debian's Abseil it is on
// by default. It then searches for cycles whenever gRPC takes a lock, which takes a twentieth of
// the time of a small call.
void SwitchLockDebuggingOff();

// Makes glibc return buffers of 2 MiB and more to the system when they are freed. By default glibc
// may keep freed buffers of up to 32 MiB each for reuse, as gaps between buffers that are still in
// use. In a test, requests and answers of 4 MiB took 94 MiB although their budget was 64 MiB.
void ReturnLargeBuffers();

// Blocks SIGTERM and SIGINT in this thread and in all threads that it starts. Must be called before
// anything else.
void BlockStopSignals();

// Makes a write to a pipe or socket without a reader fail instead of ending the process. Log lines
// are then lost, and the server continues. Also ignores SIGHUP, which a terminal sends when it
// closes, and which asks other servers to read their files again; this one sees changed files
// itself.
void IgnoreBrokenPipesAndHangups();

// Waits for SIGTERM or SIGINT and returns its number. From then on, another such signal ends the
// process at once. REQUIRES: BlockStopSignals() was called.
int WaitForStopSignal();

// When signal N ends a program, shells report the exit code 128 + N.
constexpr int kSignalExitBase = 128;

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

int NextStopSignal() {
  const sigset_t signals = StopSignals();
  int number = 0;
  while (sigwait(&signals, &number) != 0) {
  }
  return number;
}

// Handler for stop signals. It runs in threads that do not block these signals because they were
// started before main, such as OpenBLAS's. It blocks the signals in the thread that got the signal,
// and sends the signal to the process again, for WaitForStopSignal.
void PassOn(int number, siginfo_t*, void* context) {
  sigset_t& blocked = static_cast<ucontext_t*>(context)->uc_sigmask;
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGINT);
  kill(getpid(), number);
}

int64_t RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int64_t>(limit.rlim_cur);
}

void SwitchLockDebuggingOff() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

void ReturnLargeBuffers() {
  // Smaller buffers stay with the allocator, because returning them costs a system call, and page
  // faults on reuse.
  mallopt(M_MMAP_THRESHOLD, 2 << 20);
  mallopt(M_TRIM_THRESHOLD, 8 << 20);
}

void BlockStopSignals() {
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  struct sigaction pass_on = {};
  pass_on.sa_sigaction = PassOn;
  pass_on.sa_flags = SA_SIGINFO | SA_RESTART;
  pass_on.sa_mask = signals;
  sigaction(SIGTERM, &pass_on, nullptr);
  sigaction(SIGINT, &pass_on, nullptr);
}

void IgnoreBrokenPipesAndHangups() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
}

int WaitForStopSignal() {
  const int first = NextStopSignal();
  // The next signal finds this thread anywhere in the shutdown, so its handler does nothing but end
  // the process.
  struct sigaction end_now = {};
  end_now.sa_handler = [](int number) { _exit(kSignalExitBase + number); };
  sigaction(SIGTERM, &end_now, nullptr);
  sigaction(SIGINT, &end_now, nullptr);
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  return first;
}

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
  const std::string api_http = server.api_http_address().empty()
                                   ? ""
                                   : absl::StrCat(" api_http=", server.api_http_address());
  std::printf("phimapd ready: grpc=%s http=%s%s%s\n", server.grpc_address().c_str(),
              server.http_address().empty() ? "none" : server.http_address().c_str(),
              api_http.c_str(), unix_address.c_str());
  std::fflush(stdout);
}

int Run(const ServerOptions& options) {
  BlockStopSignals();
  IgnoreBrokenPipesAndHangups();
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
  phimap::SwitchLockDebuggingOff();
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
