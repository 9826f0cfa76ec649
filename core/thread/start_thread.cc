#include "core/thread/start_thread.h"

#include <sys/resource.h>
#include <sys/syscall.h>
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

// Linux's struct sched_attr, whose header clashes with the C library's.
struct Attributes {
  uint32_t size_bytes = sizeof(Attributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t niceness = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;  // the slice of an ordinary thread
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};

bool Read(Attributes& attributes) {
  return syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) == 0;
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

void RequestTimeSlice(absl::Duration slice) {
  Attributes attributes;
  if (!Read(attributes)) return;
  attributes.runtime_ns = static_cast<uint64_t>(absl::ToInt64Nanoseconds(slice));
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

absl::Duration TimeSlice() {
  Attributes attributes;
  return Read(attributes) ? absl::Nanoseconds(attributes.runtime_ns) : absl::ZeroDuration();
}

}  // namespace phimap
