#include "client/cli/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "core/status/check.h"
#include "core/thread/start_thread.h"

namespace phimap::cli {
namespace {

constexpr char kSignal = 's';
constexpr char kStop = 'q';

// A signal handler may do almost nothing: it wakes a thread through this pipe.
int wake_pipe[2] = {-1, -1};

void OnSignal(int) {
  const int saved = errno;
  [[maybe_unused]] const ssize_t written = write(wake_pipe[1], &kSignal, 1);
  errno = saved;
}

}  // namespace

Interrupt::Interrupt(client::CancelToken& token) {
  PHIMAP_CHECK(wake_pipe[0] < 0 && pipe2(wake_pipe, O_CLOEXEC) == 0);
  watcher_ = StartThread("signals", [&token] {
    char c = 0;
    while (true) {
      const ssize_t size = read(wake_pipe[0], &c, 1);
      if (size < 0 && errno == EINTR) continue;
      if (size != 1 || c == kStop) return;
      token.Cancel();
    }
  });
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  // Restores the default effect for the next signal of this kind.
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  PHIMAP_CHECK(write(wake_pipe[1], &kStop, 1) == 1);
  watcher_.join();
  for (int& end : wake_pipe) {
    close(end);
    end = -1;
  }
}

}  // namespace phimap::cli
