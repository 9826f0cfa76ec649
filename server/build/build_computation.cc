#include "server/build/build_computation.h"

#include <algorithm>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/mapping/build/build_cost.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "proto/error/request_errors.h"
#include "server/build/build_error.h"
#include "server/kernel_client/kernel_examples.h"
#include "server/kernel_client/kernel_queue.h"
#include "server/kernel_client/remote_kernel_rows.h"
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

// Asks the kernel's service for the values of the rows, and waits for them.
absl::StatusOr<KernelRows> ValuesOf(KernelQueue& kernel, const ExamplesView& rows) {
  std::promise<absl::StatusOr<KernelRows>> answer;
  kernel.Submit(
      {.count = rows.rows(),
       .bytes = AppendedBytes(rows, kernel.kind()),
       .append = [&](v1::Examples& to) { AppendExamples(rows, kernel.kind(), to); },
       .deadline = absl::InfiniteFuture(),
       .cancelled = nullptr,
       .done = [&](absl::StatusOr<KernelRows> values) { answer.set_value(std::move(values)); }});
  return answer.get_future().get();
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

absl::Status BuildComputation::CheckEverFits(const BuildOrder& order) const {
  if (order.training != nullptr) return absl::OkStatus();  // its first block says what it needs
  return memory_.CheckEverFits(LeastReservedBytes(order.spec, options_.threads));
}

absl::Status BuildComputation::Add(BuildJob& job, const TrainingBlock& block) {
  // Checks before yielding, because a withdrawn block is run here by a thread that must not wait.
  if (const BuildSnapshot now = job.Snapshot(); IsFinished(now.state)) return now.error;
  job.YieldIfDue();
  std::optional<BuildJob::Work>* work = job.BeginWork();
  if (work == nullptr) return job.Snapshot().error;
  const absl::Status added =
      CatchOutOfMemory<absl::Status>([&] { return Take(job, *work, block); });
  const int64_t rows = block.rows.rows();
  if (added.ok()) metrics_.rows->Increment(static_cast<double>(rows));
  job.EndWork(options_.now(), added.ok() ? rows : 0);
  return added;
}

absl::Status BuildComputation::Take(BuildJob& job, std::optional<BuildJob::Work>& work,
                                    const TrainingBlock& block) {
  if (!work.has_value()) {
    PHIMAP_ASSIGN_OR_RETURN(work, NewWork(job.order(), block.rows));
  }
  auto* const sample = std::get_if<StreamSample>(&work->rows);
  if (sample == nullptr) return Train(job, *work, block);
  const int64_t rows_before = sample->rows();
  return InStream(sample->Add(block.rows), rows_before);
}

absl::StatusOr<BuildJob::Work> BuildComputation::NewWork(const BuildOrder& order,
                                                         const ExamplesView& first) {
  if (order.training != nullptr) {
    return BuildJob::Work{{}, 0, NewTraining(*order.training)};
  }
  const BuildSpec& spec = order.spec;
  const int64_t columns = SampleColumns(first);
  PHIMAP_RETURN_IF_ERROR(FromRequestRoot(spec.CheckExamples(first.kind(), columns)));
  // Reserves for a full-length stream: its real length is not known yet.
  PHIMAP_ASSIGN_OR_RETURN(
      MemoryBudget::Reservation memory,
      memory_.Reserve(ReservedBytes(spec, first.kind(), columns, options_.threads)));
  return BuildJob::Work{std::move(memory), 0, StreamSample(spec, columns, first.kind())};
}

std::unique_ptr<Training> BuildComputation::NewTraining(const TrainingOrder& order) {
  auto training = order.features.has_value()
                      ? std::make_unique<Training>(*order.features, spool_space_, order.spec)
                      : std::make_unique<Training>(order.version.engine(), order.version.residual(),
                                                   order.spec);
  training->UseThreads(options_.training_threads);
  return training;
}

absl::Status BuildComputation::Train(BuildJob& job, BuildJob::Work& work,
                                     const TrainingBlock& given) {
  Training& training = *std::get<std::unique_ptr<Training>>(work.rows);
  const TrainingOrder& order = *job.order().training;
  KernelQueue* const kernel = order.features.has_value() ? nullptr : order.version.kernel();
  if (kernel != nullptr) {
    PHIMAP_RETURN_IF_ERROR(CheckExamples(given.rows));
    PHIMAP_ASSIGN_OR_RETURN(KernelRows values, ValuesOf(*kernel, given.rows));
    RemoteKernelRows rows(std::move(values), *kernel);
    PHIMAP_RETURN_IF_ERROR(rows.Fill());
    TrainingBlock block = given;
    block.rows = rows.rows();
    return Learn(job, work, training, block);
  }
  return Learn(job, work, training, given);
}

absl::Status BuildComputation::Learn(BuildJob& job, BuildJob::Work& work, Training& training,
                                     const TrainingBlock& block) {
  const int64_t before = training.rows();
  const int64_t needed = training.BytesWith(block);
  if (needed > work.reserved_bytes) {
    const absl::Status grown = memory_.Grow(work.memory, needed - work.reserved_bytes);
    const LearnerType& learner = *job.order().training->spec.learner.type;
    if (!grown.ok() && learner.needs_all_rows()) {
      return WithRemedy(grown, absl::StrCat(learner.name,
                                            " keeps the features of all rows in memory; ridge "
                                            "learns from any number of rows in one pass"));
    }
    PHIMAP_RETURN_IF_ERROR(grown);
    work.reserved_bytes = needed;
  }
  return InStream(training.Add(block, [&job] { return job.Checkpoint("receive", 0); }), before);
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
      CatchOutOfMemory<absl::StatusOr<BuiltVersion>>([&] { return Make(job, *work); });
  work->reset();
  job.EndWork(options_.now(), 0);
  if (!built.ok()) return FromRequestRoot(built.status());
  return built;
}

absl::StatusOr<BuiltVersion> BuildComputation::Make(BuildJob& job,
                                                    std::optional<BuildJob::Work>& work) {
  SharedCores monitor(job, options_.threads, computing_);
  const BuildOrder& order = job.order();
  if (order.training != nullptr) {
    if (!work.has_value()) {
      PHIMAP_ASSIGN_OR_RETURN(work, NewWork(order, RowsView{}));  // Finish returns the error
    }
    std::string artifact;
    if (!order.training->features.has_value()) {
      PHIMAP_ASSIGN_OR_RETURN(artifact,
                              store_.ReadArtifact(order.training->version.record().digest));
    }
    return std::get<std::unique_ptr<Training>>(work->rows)->Finish(artifact, monitor);
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<KernelSource> source, SourceOf(order.spec));
  // The stream had no block: BuildVersion returns the right error for an empty sample.
  StreamSample sample = work.has_value() ? std::move(std::get<StreamSample>(work->rows))
                                         : StreamSample(order.spec, 1);
  return BuildVersion(order.spec, std::move(sample), monitor, source.get());
}

}  // namespace phimap
