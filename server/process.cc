#include "server/process.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>

#include "absl/synchronization/mutex.h"

namespace phimap {
namespace {

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

}  // namespace

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

}  // namespace phimap
