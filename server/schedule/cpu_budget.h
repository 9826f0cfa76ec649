// Number of threads that may compute: the minimum of the process's affinity and its cgroups'
// quotas.
//
// Reading (files, system calls) is separate from deciding (pure functions).
#ifndef PHIMAP_SERVER_SCHEDULE_CPU_BUDGET_H_
#define PHIMAP_SERVER_SCHEDULE_CPU_BUDGET_H_

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace phimap {

// OpenBLAS's heap is corrupted at about 130 concurrent callers; half of that leaves capacity for
// builds.
inline constexpr int kMaxComputeThreads = 64;

// Returns the number of cores granted by the content of cgroup v2's cpu.max: "200000 100000" → 2.
// Returns nullopt if there is no limit ("max …") or the text does not have this form.
std::optional<double> ParseCpuMax(absl::string_view text);

// Returns the number of cores granted by cgroup v1's cpu.cfs_quota_us and cpu.cfs_period_us, or
// nullopt if the quota is -1.
std::optional<double> ParseCfsQuota(absl::string_view quota_us, absl::string_view period_us);

// Returns the number of threads for `affinity` usable cores under `quotas`: the minimum of all
// these numbers, rounded down, but at least 1 and at most kMaxComputeThreads. It is rounded down,
// because the operating system would stop a thread beyond the quota for part of every period, and
// the requests of that thread would wait.
int CpuBudget(int affinity, const std::vector<double>& quotas);

// Returns the CpuBudget of this process.
int CpuBudgetOfThisProcess();

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_CPU_BUDGET_H_
