#include "core/thread/start_thread.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/thread/cgroup.h"

namespace phimap {
namespace {

constexpr int kFailed = 1;

// Says which limits of threads are in force.
std::string Limits() {
  rlimit processes{};
  const bool known = getrlimit(RLIMIT_NPROC, &processes) == 0;
  const bool unlimited = !known || processes.rlim_cur == RLIM_INFINITY;
  const std::optional<int64_t> container = LeastCgroupLimit("pids", "pids.max", "pids.max");
  return absl::StrCat("the user may have ",
                      unlimited ? "any number of" : absl::StrCat(processes.rlim_cur),
                      " threads (RLIMIT_NPROC, ulimit -u), the container ",
                      container.has_value() ? absl::StrCat(*container) : "any number of",
                      " (pids.max, --pids-limit, TasksMax=)");
}

}  // namespace

std::optional<std::thread> TryStartThread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

std::thread StartThread(absl::string_view purpose, std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    EndForLackOf(absl::StrCat("the thread for ", purpose), error.code().value(),
                 absl::StrCat(Limits(), "; raise the limit, or end other processes"));
  }
}

void EndForLackOf(absl::string_view what, int error, absl::string_view advice) {
  const std::string text = absl::StrCat(program_invocation_short_name, ": cannot get ", what, ": ",
                                        std::strerror(error), "; ", advice, "\n");
  // Written at once: the log's own thread may be the one that is missing.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  // Other threads run already, so nothing is destroyed; what was committed stays.
  _exit(kFailed);
}

}  // namespace phimap
