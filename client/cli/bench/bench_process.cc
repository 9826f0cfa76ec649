#include "client/cli/bench/bench_process.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace phimap::cli {
namespace {

// Positions of utime and stime in /proc/PID/stat, counted from 0 after the command's name
// (proc(5)).
constexpr size_t kUserTicks = 11;
constexpr size_t kSystemTicks = 12;

double Microseconds(const timeval& time) {
  return 1e6 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec);
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

// Returns the bytes that a line of `text` such as "VmRSS:   1234 kB" states. `key` is the start of
// the line. 0 if there is no such line.
int64_t KibibytesOf(const std::string& text, absl::string_view key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, key)) continue;
    for (absl::string_view word : absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
      int64_t kib = 0;
      if (absl::SimpleAtoi(word, &kib)) return kib * 1024;
    }
  }
  return 0;
}

}  // namespace

ProcessUse OwnUse() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {.cpu_us = Microseconds(usage.ru_utime) + Microseconds(usage.ru_stime)};
}

absl::StatusOr<ProcessUse> UseOf(pid_t pid) {
  const std::string folder = absl::StrCat("/proc/", pid);
  const std::string stat = ReadAll(folder + "/stat");
  // The command's name is in parentheses and may hold anything, spaces and ')' included.
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) {
    return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  }
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(name_end + 2), ' ');
  int64_t user = 0;
  int64_t system = 0;
  if (fields.size() <= kSystemTicks || !absl::SimpleAtoi(fields[kUserTicks], &user) ||
      !absl::SimpleAtoi(fields[kSystemTicks], &system)) {
    return absl::InternalError(absl::StrCat(folder, "/stat cannot be read"));
  }
  const std::string status = ReadAll(folder + "/status");
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  return ProcessUse{.cpu_us = 1e6 * static_cast<double>(user + system) / ticks_per_second,
                    .resident_bytes = KibibytesOf(status, "VmRSS:"),
                    .peak_resident_bytes = KibibytesOf(status, "VmHWM:")};
}

int UsableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return CPU_COUNT(&set);
}

}  // namespace phimap::cli
