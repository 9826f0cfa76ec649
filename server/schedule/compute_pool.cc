#include "server/schedule/compute_pool.h"

#include <sched.h>

#include <algorithm>
#include <string>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/thread/cgroup.h"
#include "core/thread/start_thread.h"

namespace phimap {

namespace {

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
  const CgroupFolders folders = CgroupFoldersOfThisProcess("cpu");
  std::vector<double> quotas;
  for (const std::string& folder : folders.v2) {
    const auto quota = ParseCpuMax(ReadSmallFile(folder + "/cpu.max").value_or(""));
    if (quota) quotas.push_back(*quota);
  }
  for (const std::string& folder : folders.v1) {
    const auto quota = ParseCfsQuota(ReadSmallFile(folder + "/cpu.cfs_quota_us").value_or(""),
                                     ReadSmallFile(folder + "/cpu.cfs_period_us").value_or(""));
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

int CpuBudget(int affinity, const std::vector<double>& quotas) {
  double cores = std::min(affinity, kMaxComputeThreads);
  for (const double quota : quotas) cores = std::min(cores, quota);
  return std::max(1, static_cast<int>(cores));
}

int CpuBudgetOfThisProcess() { return CpuBudget(UsableCores(), QuotasOfThisProcess()); }

ComputePool::ComputePool(int threads, const std::function<void()>& body) {
  threads_.reserve(threads);
  for (int i = 0; i < threads; ++i) {
    threads_.push_back(StartThread("computing", [body] {
      // Callers wait for the results of this thread. With 16 callers on two cores, the short time
      // slice lowers the p99 latency by a tenth.
      RequestTimeSlice(kShortTimeSlice);
      body();
    }));
  }
}

ComputePool::~ComputePool() {
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace phimap
