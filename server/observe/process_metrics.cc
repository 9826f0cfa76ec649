#include "server/observe/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"

namespace phimap {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

std::string ReadFile(const char* path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

MetricFamily Family(const char* name, const char* help, MetricType type, double value) {
  MetricFamily family{name, help, type, {}};
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  if (type == MetricType::Counter) metric.counter.value = value;
  if (type == MetricType::Gauge) metric.gauge.value = value;
  return family;
}

MetricFamily Gauge(const char* name, const char* help, double value) {
  return Family(name, help, MetricType::Gauge, value);
}

// Returns the time at which the system booted, in seconds since the epoch.
std::optional<double> BootTime() {
  for (absl::string_view line : absl::StrSplit(ReadFile("/proc/stat"), '\n')) {
    double seconds = 0;
    if (absl::ConsumePrefix(&line, "btime ") && absl::SimpleAtod(line, &seconds)) return seconds;
  }
  return std::nullopt;
}

std::optional<int64_t> OpenFiles() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return std::nullopt;
  int64_t count = -1;  // does not count the descriptor of `folder`
  while (const dirent* const entry = readdir(folder)) {
    if (entry->d_name[0] != '.') ++count;
  }
  closedir(folder);
  return count;
}

}  // namespace

std::optional<ProcessStat> ParseProcessStat(absl::string_view text) {
  const size_t name_end = text.rfind(')');
  if (name_end == absl::string_view::npos) return std::nullopt;
  // fields[0] is field 3 in the table of /proc/PID/stat in proc(5).
  const std::vector<absl::string_view> fields =
      absl::StrSplit(text.substr(name_end + 1), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  const auto number = [&fields](size_t field) {
    int64_t value = 0;
    return absl::SimpleAtoi(fields[field - 3], &value) ? value : -1;
  };
  constexpr size_t kLastField = 24;
  if (fields.size() < kLastField - 2) return std::nullopt;
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  ProcessStat stat;
  stat.cpu_seconds = static_cast<double>(number(14) + number(15)) / ticks;
  stat.threads = number(20);
  stat.start_seconds = static_cast<double>(number(22)) / ticks;
  stat.virtual_bytes = number(23);
  stat.resident_bytes = number(24) * sysconf(_SC_PAGESIZE);
  return stat;
}

std::vector<MetricFamily> ProcessMetrics::Collect() const {
  std::vector<MetricFamily> families;
  if (const std::optional<ProcessStat> stat = ParseProcessStat(ReadFile("/proc/self/stat"))) {
    families.push_back(Family("process_cpu_seconds_total",
                              "Total user and system CPU time spent in seconds.",
                              MetricType::Counter, stat->cpu_seconds));
    families.push_back(Gauge("process_threads", "Number of threads of the process.",
                             static_cast<double>(stat->threads)));
    families.push_back(Gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.",
                             static_cast<double>(stat->virtual_bytes)));
    families.push_back(Gauge("process_resident_memory_bytes", "Resident memory size in bytes.",
                             static_cast<double>(stat->resident_bytes)));
    if (const std::optional<double> boot = BootTime()) {
      families.push_back(Gauge("process_start_time_seconds",
                               "Start time of the process since unix epoch in seconds.",
                               *boot + stat->start_seconds));
    }
  }
  if (const std::optional<int64_t> open = OpenFiles()) {
    families.push_back(
        Gauge("process_open_fds", "Number of open file descriptors.", static_cast<double>(*open)));
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    families.push_back(Gauge("process_max_fds", "Maximum number of open file descriptors.",
                             static_cast<double>(limit.rlim_cur)));
  }
  return families;
}

std::vector<MetricFamily> DiskMetrics::Collect() const {
  struct statvfs disk {};
  if (statvfs(folder_.c_str(), &disk) != 0) return {};
  const double block = static_cast<double>(disk.f_frsize);
  const std::string name = absl::StrCat("phimap_", whose_, "_disk");
  return {Gauge(absl::StrCat(name, "_bytes").c_str(),
                absl::StrCat("Size of the file system that holds the ", whose_, ".").c_str(),
                block * static_cast<double>(disk.f_blocks)),
          Gauge(absl::StrCat(name, "_free_bytes").c_str(),
                absl::StrCat("Space available to phimapd on the file system that holds the ",
                             whose_, ".")
                    .c_str(),
                block * static_cast<double>(disk.f_bavail))};
}

}  // namespace phimap
