// The threads that compute features. Their number is fixed: the number of cores that the process
// may use.
#ifndef PHIMAP_SERVER_SCHEDULE_COMPUTE_POOL_H_
#define PHIMAP_SERVER_SCHEDULE_COMPUTE_POOL_H_

#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "absl/strings/string_view.h"

namespace phimap {

// Number of threads that may compute: the minimum of the process's affinity and its cgroups'
// quotas.
//
// Reading (files, system calls) is separate from deciding (pure functions).

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

// Runs `body` on each thread. The destructor joins the threads, so the owner must first make `body`
// return (TransformScheduler::Drain).
class ComputePool {
 public:
  ComputePool(int threads, const std::function<void()>& body);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  int threads() const { return static_cast<int>(threads_.size()); }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_COMPUTE_POOL_H_
