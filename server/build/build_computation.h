// The computations of builds: turns the rows of a stream into a sample, and the sample into a
// version; or trains a head on the rows of a stream, and puts it beside the features of a version.
#ifndef PHIMAP_SERVER_BUILD_BUILD_COMPUTATION_H_
#define PHIMAP_SERVER_BUILD_BUILD_COMPUTATION_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/plan/examples.h"
#include "server/admission/memory_budget.h"
#include "server/build/build_job.h"
#include "server/kernel_client/kernel_service.h"
#include "server/observe/metrics.h"
#include "server/store/store.h"

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
    // Threads of a training while its rows come. They may be one more than a build's: their pieces
    // of work are short.
    int training_threads = 1;
    // Where trainings keep rows that they read again, and how many bytes all of them may take.
    std::string spool_folder = "/tmp";
    int64_t spool_bytes = int64_t{16} << 30;
    std::function<BuildJob::Clock::time_point()> now;
  };
  // `store`, `memory`, `metrics` and everything that `options` points to must outlive this object.
  BuildComputation(Options options, Store& store, MemoryBudget& memory, const BuildMetrics& metrics)
      : options_(std::move(options)),
        spool_space_(options_.spool_folder, options_.spool_bytes),
        store_(store),
        memory_(memory),
        metrics_(metrics) {}

  // Checks that phimap or a configured kernel service computes the kernel. Otherwise returns
  // FAILED_PRECONDITION (KERNEL_SERVICE_NOT_LISTED, field "spec.kernel").
  absl::Status CheckKernel(const BuildSpec& spec) const { return SourceOf(spec).status(); }
  // Returns RESOURCE_EXHAUSTED for a build that can never fit into memory, whatever rows it gets.
  absl::Status CheckEverFits(const BuildOrder& order) const;

  // Changes Options::spool_bytes.
  void SetSpoolBytes(int64_t bytes) { spool_space_.SetLimitBytes(bytes); }

  // Adds a block of rows to the job's sample or training. The first block reserves the memory of a
  // sample, and each block what a training then holds. Runs on a build thread, unless the job has
  // ended.
  absl::Status Add(BuildJob& job, const TrainingBlock& block);
  // Computes the version once all rows have arrived. Runs on a build thread.
  absl::StatusOr<BuiltVersion> Compute(BuildJob& job);

 private:
  absl::Status Take(BuildJob& job, std::optional<BuildJob::Work>& work, const TrainingBlock& block);
  absl::StatusOr<BuildJob::Work> NewWork(const BuildOrder& order, const ExamplesView& first);
  std::unique_ptr<Training> NewTraining(const TrainingOrder& order);
  // Adds rows to a training; those of a kernel service by the values that it computes.
  absl::Status Train(BuildJob& job, BuildJob::Work& work, const TrainingBlock& given);
  absl::Status Learn(BuildJob& job, BuildJob::Work& work, Training& training,
                     const TrainingBlock& block);
  absl::StatusOr<BuiltVersion> Make(BuildJob& job, std::optional<BuildJob::Work>& work);
  // Returns the source of a remote kernel's values, or null if no service computes the kernel.
  absl::StatusOr<std::unique_ptr<KernelSource>> SourceOf(const BuildSpec& spec) const;

  const Options options_;
  SpoolSpace spool_space_;
  Store& store_;
  MemoryBudget& memory_;
  const BuildMetrics& metrics_;
  // Number of builds that are computing now.
  std::atomic<int> computing_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_BUILD_BUILD_COMPUTATION_H_
