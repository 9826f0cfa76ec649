#include "server/schedule/cpu_budget.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace phimap {
namespace {

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

int UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

std::optional<double> Ratio(absl::string_view quota, absl::string_view period) {
  double quota_us = 0, period_us = 0;
  if (!absl::SimpleAtod(quota, &quota_us) || !absl::SimpleAtod(period, &period_us)) {
    return std::nullopt;
  }
  if (!(quota_us > 0) || !(period_us > 0)) return std::nullopt;
  return quota_us / period_us;
}

std::vector<double> QuotasOfThisProcess() {
  const CgroupPaths paths = ParseProcSelfCgroup(ReadFile("/proc/self/cgroup").value_or(""));
  std::vector<double> quotas;
  for (const std::string& path : WithAncestors(paths.v2.value_or(""))) {
    const auto limit = ReadFile(absl::StrCat("/sys/fs/cgroup", path, "/cpu.max"));
    if (const auto quota = ParseCpuMax(limit.value_or(""))) quotas.push_back(*quota);
  }
  for (const std::string& path : WithAncestors(paths.v1_cpu.value_or(""))) {
    const std::string folder = absl::StrCat("/sys/fs/cgroup/cpu", path);
    const auto quota = ParseCfsQuota(ReadFile(folder + "/cpu.cfs_quota_us").value_or(""),
                                     ReadFile(folder + "/cpu.cfs_period_us").value_or(""));
    if (quota) quotas.push_back(*quota);
  }
  return quotas;
}

}  // namespace

std::optional<double> ParseCpuMax(absl::string_view text) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(absl::StripAsciiWhitespace(text), ' ', absl::SkipEmpty());
  if (parts.size() != 2) return std::nullopt;
  return Ratio(parts[0], parts[1]);
}

std::optional<double> ParseCfsQuota(absl::string_view quota_us, absl::string_view period_us) {
  return Ratio(absl::StripAsciiWhitespace(quota_us), absl::StripAsciiWhitespace(period_us));
}

CgroupPaths ParseProcSelfCgroup(absl::string_view text) {
  CgroupPaths paths;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (parts[0] == "0" && parts[1].empty()) paths.v2 = std::string(parts[2]);
    for (const absl::string_view controller : absl::StrSplit(parts[1], ',')) {
      if (controller == "cpu") paths.v1_cpu = std::string(parts[2]);
    }
  }
  return paths;
}

std::vector<std::string> WithAncestors(absl::string_view path) {
  std::vector<std::string> all;
  while (!path.empty() && path != "/") {
    all.emplace_back(path);
    const size_t slash = path.rfind('/');
    path = slash == absl::string_view::npos ? absl::string_view() : path.substr(0, slash);
  }
  all.emplace_back("");
  return all;
}

int CpuBudget(int affinity, const std::vector<double>& quotas) {
  double cores = std::min(affinity, kMaxComputeThreads);
  for (const double quota : quotas) cores = std::min(cores, quota);
  return std::max(1, static_cast<int>(cores));
}

int CpuBudgetOfThisProcess() { return CpuBudget(UsableCores(), QuotasOfThisProcess()); }

}  // namespace phimap
