// The arithmetic of builds: rows of a stream become a sample, and the sample a version.
#ifndef PHIMAP_SERVER_BUILD_BUILD_COMPUTATION_H_
#define PHIMAP_SERVER_BUILD_BUILD_COMPUTATION_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/plan/examples.h"
#include "server/build/build_job.h"
#include "server/kernel_client/kernel_services.h"
#include "server/memory/memory_budget.h"
#include "server/observe/metrics.h"

namespace phimap {

// Runs the computation of builds, which share the threads if several compute at once. Thread-safe;
// one call at a time per job.
class BuildComputation {
 public:
  struct Options {
    // Threads that all builds share.
    int threads = 1;
    // Finds the services that compute remote kernels; null: none are listed.
    const KernelServices* kernels = nullptr;
    std::function<BuildJob::Clock::time_point()> now;
  };
  // `memory`, `metrics` and what the options name outlive it.
  BuildComputation(Options options, MemoryBudget& memory, const BuildMetrics& metrics)
      : options_(std::move(options)), memory_(memory), metrics_(metrics) {}

  // Whether the kernel is computed here or by a service that is listed: FAILED_PRECONDITION
  // (KERNEL_SERVICE_NOT_LISTED, field "spec.kernel").
  absl::Status CheckKernel(const BuildSpec& spec) const { return SourceOf(spec).status(); }
  // RESOURCE_EXHAUSTED for a build that can never fit into the memory, whatever its rows.
  absl::Status CheckEverFits(const BuildSpec& spec) const;

  // Takes a block of rows into the job's sample; the first block reserves its memory. On a build
  // thread, unless the job has ended.
  absl::Status Add(BuildJob& job, const ExamplesView& rows);
  // The version, when all rows are there. On a build thread.
  absl::StatusOr<BuiltVersion> Compute(BuildJob& job);

 private:
  absl::Status Take(const BuildSpec& spec, std::optional<BuildJob::Work>& work,
                    const ExamplesView& rows);
  absl::StatusOr<BuildJob::Work> NewWork(const BuildSpec& spec, const ExamplesView& first);
  // The service that computes the kernel; null if none does.
  absl::StatusOr<std::unique_ptr<KernelSource>> SourceOf(const BuildSpec& spec) const;

  const Options options_;
  MemoryBudget& memory_;
  const BuildMetrics& metrics_;
  // Builds that compute at the moment.
  std::atomic<int> computing_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_BUILD_BUILD_COMPUTATION_H_
