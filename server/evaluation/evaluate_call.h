// One Evaluate: spec, labeled examples, finish in; progress, the evaluation out.
#ifndef PHIMAP_SERVER_EVALUATION_EVALUATE_CALL_H_
#define PHIMAP_SERVER_EVALUATION_EVALUATE_CALL_H_

#include <atomic>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "phimap/v1/evaluation_service.pb.h"
#include "server/calls/stream_call.h"
#include "server/evaluate/evaluation_job.h"
#include "server/kernel_client/kernel_queue.h"
#include "server/memory/memory_budget.h"
#include "server/registry/version_registry.h"
#include "server/schedule/job_queue.h"
#include "server/store/store.h"

namespace phimap {

// At once; each may hold rows in memory.
inline constexpr int kMaxEvaluations = 16;
// Minimum rate of rows, averaged over the idle timeout: all rows are held until the last has
// arrived.
inline constexpr int64_t kSlowestBytesPerSecond = int64_t{64} << 10;

// Services that evaluations use; outlives them.
struct EvaluateCallEnvironment {
  VersionRegistry& registry;
  Store& store;
  // Budget of all evaluations together.
  MemoryBudget& memory;
  // Threads that map rows, and that learn.
  JobQueue& ingest;
  JobQueue& learning;
  // Evaluations under way.
  std::atomic<int>& running;
  // Time for which a client may keep an evaluation waiting.
  absl::Duration idle_timeout;
  // Called on both kinds of threads between tiles: lets Transforms pass.
  std::function<void()> yield;
};

// Invariants:
//   1. The next message is asked for only after the one before was taken, on an ingest thread,
//      which reads it where it is.
//   2. One write at most is under way; of the progress that happens meanwhile only the newest is
//      told.
//   3. The job belongs to the piece of work that has it, and otherwise to
//      the call.
//   4. When the call ends, its waiting work is withdrawn from the queues, and running work stops at
//      its next checkpoint: no thread works for a client that has left.
class EvaluateCall final : public TypedStreamCall<v1::EvaluateRequest> {
 public:
  EvaluateCall(const CallStart& start, const EvaluateCallEnvironment& environment);

 private:
  using Job = std::shared_ptr<EvaluationJob>;
  using Framed = std::shared_ptr<const OutputBytes>;
  // The message that may come next.
  enum class Expects { kSpec, kExamples, kNothing };

  void Start() override;
  void OnRequest() override;
  void OnRequestsEnd() override;
  void OnWritten() override;
  void OnEnd(const absl::Status& status) override;

  // Each takes the message in request().
  void TakeSpec();
  void Resolved(const EvaluationSpec& spec, absl::StatusOr<VersionHandle> version);
  void TakeExamples();
  void TakeFinish();
  absl::StatusOr<ExamplesView> ReadExamples();
  // Gives the job to a piece of work.
  void Queue(JobQueue& queue, std::function<void(Job)> piece);
  void SetState(v1::EvaluateProgress::State state);
  // Writes the next event, if there is one and none is on its way.
  void Tell();

  // On an ingest thread, each. Asks the version's kernel service about rows that follow
  // `rows_before` others, and continues with its values.
  void AskService(const VersionHandle& version, const ExamplesView& rows, int64_t rows_before);
  absl::Status AddValues(EvaluationJob& job, const KernelRows& values);
  absl::Status Add(EvaluationJob& job, const ExamplesView& rows);
  // Gives the job back, or ends the call with the result.
  void Added(Job job, const absl::Status& added);
  // On a learning thread, each.
  void LearnNow(Job job);
  absl::StatusOr<Framed> Learn(EvaluationJob& job);
  absl::Status Report(int fold, double fraction);
  // On both kinds of threads: whether to continue; lets Transforms pass.
  absl::Status LookUp();
  // From any thread.
  void FinishSoon(const absl::Status& status);

  const EvaluateCallEnvironment& environment_;
  Expects expects_ = Expects::kSpec;
  Job job_;
  v1::EvaluateProgress progress_;
  bool changed_ = false;
  Framed evaluation_;
  bool evaluation_told_ = false;
  std::atomic<bool> ended_{false};

  // Used by the thread that works: when LookUp last let Transforms pass, and the progress reported
  // last.
  absl::Time yielded_ = absl::InfinitePast();
  int told_fold_ = -1;
  double told_fraction_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_EVALUATION_EVALUATE_CALL_H_
