// Number of threads that may compute: the minimum of the process's affinity and its cgroups'
// quotas.
//
// Reading (files, system calls) and deciding (pure functions) are apart.
#ifndef PHIMAP_SERVER_SCHEDULE_CPU_BUDGET_H_
#define PHIMAP_SERVER_SCHEDULE_CPU_BUDGET_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace phimap {

// OpenBLAS's heap is corrupted at about 130 concurrent callers; half of that leaves capacity for
// builds.
inline constexpr int kMaxComputeThreads = 64;

// Cores granted by the content of cgroup v2's cpu.max, "200000 100000" → 2; nullopt without a limit
// ("max …") or for text that is not of this form.
std::optional<double> ParseCpuMax(absl::string_view text);

// Cores granted by cgroup v1's cpu.cfs_quota_us and cpu.cfs_period_us; nullopt for quota -1.
std::optional<double> ParseCfsQuota(absl::string_view quota_us, absl::string_view period_us);

// Paths of the process in the cgroup hierarchies, from /proc/self/cgroup.
struct CgroupPaths {
  // The line "0::/path".
  std::optional<std::string> v2;
  // The line whose controllers include cpu.
  std::optional<std::string> v1_cpu;
};
CgroupPaths ParseProcSelfCgroup(absl::string_view text);

// The path and all above it, the root last: a limit anywhere on the way counts. "/a/b" → "/a/b",
// "/a", "".
std::vector<std::string> WithAncestors(absl::string_view path);

// Threads for `affinity` usable cores under `quotas`: the least of them rounded down (a thread
// beyond the quota would be stopped for part of every period, and so would its requests), at least
// 1 and at most kMaxComputeThreads.
int CpuBudget(int affinity, const std::vector<double>& quotas);

// CpuBudget of this process.
int CpuBudgetOfThisProcess();

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_CPU_BUDGET_H_
