// phimapd: reads its settings, opens the store, and serves until a signal. `phimapd admin` looks
// after a store instead.

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
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/engine/engine.h"
#include "core/linalg/blas.h"
#include "google/protobuf/stubs/logging.h"
#include "server/config_reload.h"
#include "server/kernel_client/grpc_log.h"
#include "server/memory_warnings.h"
#include "server/observe/log.h"
#include "server/open_store.h"
#include "server/options.h"
#include "server/server.h"
#include "server/start_failure.h"

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

// Blocks SIGTERM, SIGINT and SIGHUP in this thread and in all threads that it starts. Must be
// called before anything else.
void BlockSignals();

// Makes a write to a pipe or socket without a reader fail instead of ending the process. Log lines
// are then lost, and the server continues.
void IgnoreBrokenPipes();

// Waits for SIGTERM or SIGINT and returns its number. From then on, another such signal ends the
// process at once. Until then, calls `hangup` at each SIGHUP, which an operator sends, or a
// terminal when it closes. REQUIRES: BlockSignals() was called.
int WaitForStopSignal(const std::function<void()>& hangup);

// When signal N ends a program, shells report the exit code 128 + N.
constexpr int kSignalExitBase = 128;

sigset_t SetOf(std::initializer_list<int> numbers) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : numbers) sigaddset(&signals, number);
  return signals;
}

sigset_t AwaitedSignals() { return SetOf({SIGTERM, SIGINT, SIGHUP}); }

int NextSignal() {
  const sigset_t signals = AwaitedSignals();
  int number = 0;
  while (sigwait(&signals, &number) != 0) {
  }
  return number;
}

// Handler for awaited signals. It runs in threads that do not block them because they were
// started before main, such as OpenBLAS's. It blocks the signals in the thread that got the signal,
// and sends the signal to the process again, for WaitForStopSignal.
void PassOn(int number, siginfo_t*, void* context) {
  sigset_t& blocked = static_cast<ucontext_t*>(context)->uc_sigmask;
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGHUP);
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

void BlockSignals() {
  const sigset_t signals = AwaitedSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  struct sigaction pass_on = {};
  pass_on.sa_sigaction = PassOn;
  pass_on.sa_flags = SA_SIGINFO | SA_RESTART;
  pass_on.sa_mask = signals;
  sigaction(SIGTERM, &pass_on, nullptr);
  sigaction(SIGINT, &pass_on, nullptr);
  sigaction(SIGHUP, &pass_on, nullptr);
}

void IgnoreBrokenPipes() { std::signal(SIGPIPE, SIG_IGN); }

int WaitForStopSignal(const std::function<void()>& hangup) {
  int first = NextSignal();
  for (; first == SIGHUP; first = NextSignal()) hangup();
  // The next signal finds this thread anywhere in the shutdown, so its handler does nothing but end
  // the process.
  struct sigaction end_now = {};
  end_now.sa_handler = [](int number) { _exit(kSignalExitBase + number); };
  sigaction(SIGTERM, &end_now, nullptr);
  sigaction(SIGINT, &end_now, nullptr);
  const sigset_t signals = SetOf({SIGTERM, SIGINT});
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  return first;
}

void LogStart(const Logger& logger, const Configuration& configuration, int64_t file_limit) {
  const ServerOptions& options = configuration.options;
  logger.Log(LogLevel::kInfo, "starting",
             {{"config", configuration.file},
              {"blas_core", BlasCoreName()},
              {"engine_target", EngineTargetName()},
              {"file_limit", file_limit},
              {"cgroup_memory_bytes", options.cgroup_memory_bytes},
              {"max_live_bytes", options.max_live_bytes},
              {"memory_bytes", options.memory_bytes},
              {"build_memory_bytes", options.build_memory_bytes},
              {"max_connections", options.max_connections}});
}

// Prints the only line on stdout, in the format of the log. Scripts wait for it and read the
// addresses from it.
void AnnounceReady(const ServerOptions& options, const Server& server) {
  std::string line;
  if (options.log_format == LogFormat::kJson) {
    line = FormatLogLine(absl::Now(), LogLevel::kInfo, "ready",
                         {{"grpc", server.grpc_address()},
                          {"http", server.http_address()},
                          {"api_http", server.api_http_address()},
                          {"unix", options.unix_listen}},
                         options.log_format);
  } else {
    const std::string& http = server.http_address();
    absl::StrAppend(&line, "phimapd ready: grpc=", server.grpc_address(),
                    " http=", http.empty() ? "none" : http);
    if (const std::string& address = server.api_http_address(); !address.empty()) {
      absl::StrAppend(&line, " api_http=", address);
    }
    if (!options.unix_listen.empty()) absl::StrAppend(&line, " unix=", options.unix_listen);
    line.push_back('\n');
  }
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

// Why the server could not start.
struct StartFailure {
  const char* what;
  absl::Status why;
};

// Serves until a signal. `read`: see ConfigReload.
std::optional<StartFailure> Serve(const Configuration& configuration, ConfigReload::Read read,
                                  Logger& logger) {
  const ServerOptions& options = configuration.options;
  const int64_t file_limit = RaiseFileLimit();
  UseOneBlasThread();
  LogStart(logger, configuration, file_limit);
  WarnOfMemory(logger, options);
  absl::StatusOr<OpenedStore> store = OpenStore(options, logger);
  if (!store.ok()) return StartFailure{"cannot open the store", store.status()};
  absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(options, *std::move(store), logger);
  if (!server.ok()) return StartFailure{"cannot start", server.status()};
  AnnounceReady(options, **server);
  ConfigReload reload(configuration, std::move(read), **server, logger);
  const int signal = WaitForStopSignal([&reload] { reload.Run(); });
  logger.Log(LogLevel::kInfo, "draining",
             {{"signal", signal}, {"at_most_seconds", options.drain_seconds}});
  (*server)->Shutdown(absl::Seconds(options.drain_seconds));
  server->reset();
  logger.Log(LogLevel::kInfo, "stopped", {});
  return std::nullopt;
}

int Run(const Configuration& configuration, ConfigReload::Read read) {
  const ServerOptions& options = configuration.options;
  BlockSignals();
  IgnoreBrokenPipes();
  ReturnLargeBuffers();
  std::optional<StartFailure> failure;
  {
    Logger logger(options.log_level, options.log_format);
    logger.SetCallSampling(options.log_calls_one_in);
    const GrpcLog grpc_log(logger);
    // Without this, protobuf would write a line to stderr for each string that is not UTF-8, and
    // would block while nobody reads stderr.
    google::protobuf::SetLogHandler(nullptr);
    failure = Serve(configuration, std::move(read), logger);
  }
  // The logger has written its lines, so this one is the last.
  if (!failure.has_value()) return static_cast<int>(ServerExitCode::kStopped);
  return FailToStart(options.log_format, ServerExitCode::kFailed, failure->what, failure->why);
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
  const std::variant<phimap::Configuration, int> configuration =
      phimap::ParseOptions(argc, argv, environ);
  if (const int* exit_code = std::get_if<int>(&configuration)) return *exit_code;
  return phimap::Run(std::get<phimap::Configuration>(configuration),
                     [=] { return phimap::ReadAgain(argc, argv, environ); });
}
