// The computations of builds: turns the rows of a stream into a sample, and the sample into a
// version.
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
#include "server/kernel_client/kernel_service.h"
#include "server/memory/memory_budget.h"
#include "server/observe/metrics.h"

namespace phimap {

// Runs the computations of builds. Builds that compute concurrently share the threads. Thread-safe,
// but at most one call at a time per job.
class BuildComputation {
 public:
  struct Options {
    // Threads that all builds share.
    int threads = 1;
    // Finds the services that compute remote kernels. Null if none are configured.
    const KernelServices* kernels = nullptr;
    std::function<BuildJob::Clock::time_point()> now;
  };
  // `memory`, `metrics` and everything that `options` points to must outlive this object.
  BuildComputation(Options options, MemoryBudget& memory, const BuildMetrics& metrics)
      : options_(std::move(options)), memory_(memory), metrics_(metrics) {}

  // Checks that phimap or a configured kernel service computes the kernel. Otherwise returns
  // FAILED_PRECONDITION (KERNEL_SERVICE_NOT_LISTED, field "spec.kernel").
  absl::Status CheckKernel(const BuildSpec& spec) const { return SourceOf(spec).status(); }
  // Returns RESOURCE_EXHAUSTED for a build that can never fit into memory, whatever rows it gets.
  absl::Status CheckEverFits(const BuildSpec& spec) const;

  // Adds a block of rows to the job's sample. The first block reserves the build's memory. Runs on
  // a build thread, unless the job has ended.
  absl::Status Add(BuildJob& job, const ExamplesView& rows);
  // Computes the version once all rows have arrived. Runs on a build thread.
  absl::StatusOr<BuiltVersion> Compute(BuildJob& job);

 private:
  absl::Status Take(const BuildSpec& spec, std::optional<BuildJob::Work>& work,
                    const ExamplesView& rows);
  absl::StatusOr<BuildJob::Work> NewWork(const BuildSpec& spec, const ExamplesView& first);
  // Returns the source of a remote kernel's values, or null if no service computes the kernel.
  absl::StatusOr<std::unique_ptr<KernelSource>> SourceOf(const BuildSpec& spec) const;

  const Options options_;
  MemoryBudget& memory_;
  const BuildMetrics& metrics_;
  // Number of builds that are computing now.
  std::atomic<int> computing_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_BUILD_BUILD_COMPUTATION_H_
