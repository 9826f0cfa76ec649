#include "server/build/build_computation.h"

#include <algorithm>
#include <utility>

#include "core/mapping/build/build_cost.h"
#include "core/status/status_macros.h"
#include "server/build/build_error.h"
#include "server/kernel_client/service_kernel_source.h"

namespace phimap {
namespace {

// Returns the smallest reservation that a build may need, over all numbers of columns. Rows of one
// column do not always need the least memory, because pools of wider rows are shorter. So this
// tries numbers of columns from the whole range.
int64_t LeastReservedBytes(const BuildSpec& spec, int threads) {
  std::optional<int64_t> least;
  for (int64_t columns = 1; columns <= kMaxColumns; columns *= 2) {
    if (!spec.CheckColumns(columns).ok()) continue;
    const int64_t bytes = ReservedBytes(spec, columns, threads);
    least = std::min(least.value_or(bytes), bytes);
  }
  return least.value_or(0);
}

// Divides the build threads evenly among the builds that are computing now.
class SharedCores final : public BuildMonitor {
 public:
  SharedCores(BuildJob& job, int threads, std::atomic<int>& computing)
      : job_(job), threads_(threads), computing_(computing) {
    ++computing_;
  }
  ~SharedCores() override { --computing_; }

  absl::Status Checkpoint(absl::string_view phase, double fraction) override {
    return job_.Checkpoint(phase, fraction);
  }
  int threads() const override { return std::max(1, threads_ / computing_.load()); }

 private:
  BuildJob& job_;
  const int threads_;
  std::atomic<int>& computing_;
};

}  // namespace

absl::Status BuildComputation::CheckEverFits(const BuildSpec& spec) const {
  return memory_.CheckEverFits(LeastReservedBytes(spec, options_.threads));
}

absl::Status BuildComputation::Add(BuildJob& job, const ExamplesView& rows) {
  // Checks before yielding, because a withdrawn block is run here by a thread that must not wait.
  if (const BuildSnapshot now = job.Snapshot(); IsFinished(now.state)) return now.error;
  job.YieldIfDue();
  std::optional<BuildJob::Work>* work = job.BeginWork();
  if (work == nullptr) return job.Snapshot().error;
  const absl::Status added =
      CatchOutOfMemory<absl::Status>([&] { return Take(job.spec(), *work, rows); });
  if (added.ok()) metrics_.rows->Increment(static_cast<double>(rows.rows()));
  job.EndWork(options_.now(), added.ok() ? rows.rows() : 0);
  return added;
}

absl::Status BuildComputation::Take(const BuildSpec& spec, std::optional<BuildJob::Work>& work,
                                    const ExamplesView& rows) {
  if (!work.has_value()) {
    PHIMAP_ASSIGN_OR_RETURN(work, NewWork(spec, rows));
  }
  const int64_t rows_before = work->sample.rows();
  return InStream(work->sample.Add(rows), rows_before);
}

absl::StatusOr<BuildJob::Work> BuildComputation::NewWork(const BuildSpec& spec,
                                                         const ExamplesView& first) {
  const int64_t columns = SampleColumns(first);
  PHIMAP_RETURN_IF_ERROR(FromRequestRoot(spec.CheckExamples(first.kind(), columns)));
  // Reserves for a full-length stream: its real length is not known yet.
  PHIMAP_ASSIGN_OR_RETURN(
      MemoryBudget::Reservation memory,
      memory_.Reserve(ReservedBytes(spec, first.kind(), columns, options_.threads)));
  return BuildJob::Work{StreamSample(spec, columns, first.kind()), std::move(memory)};
}

absl::StatusOr<std::unique_ptr<KernelSource>> BuildComputation::SourceOf(
    const BuildSpec& spec) const {
  if (!spec.remote.has_value() || spec.is_precomputed()) return nullptr;
  PHIMAP_ASSIGN_OR_RETURN(
      KernelService* const service,
      FindKernelService(options_.kernels, spec.remote->endpoint, "spec.kernel"));
  return std::make_unique<ServiceKernelSource>(*service, spec.remote->kernel);
}

absl::StatusOr<BuiltVersion> BuildComputation::Compute(BuildJob& job) {
  std::optional<BuildJob::Work>* work = job.BeginWork();
  if (work == nullptr) return job.Snapshot().error;
  absl::StatusOr<BuiltVersion> built =
      CatchOutOfMemory<absl::StatusOr<BuiltVersion>>([&]() -> absl::StatusOr<BuiltVersion> {
        PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<KernelSource> source, SourceOf(job.spec()));
        // The stream had no block: BuildVersion returns the right error for an empty sample.
        SharedCores monitor(job, options_.threads, computing_);
        if (!work->has_value()) {
          return BuildVersion(job.spec(), StreamSample(job.spec(), 1), monitor, source.get());
        }
        return BuildVersion(job.spec(), std::move((*work)->sample), monitor, source.get());
      });
  work->reset();
  job.EndWork(options_.now(), 0);
  if (!built.ok()) return FromRequestRoot(built.status());
  return built;
}

}  // namespace phimap
