// One Evaluate call: receives spec, labeled examples and finish; sends progress and the evaluation.
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

// Maximum number of concurrent evaluations. Each may hold rows in memory.
inline constexpr int kMaxEvaluations = 16;
// Minimum rate at which rows must arrive, averaged over the idle timeout. There is a minimum
// because rows are held in memory until the last one has arrived.
inline constexpr int64_t kSlowestBytesPerSecond = int64_t{64} << 10;

// Objects that the evaluation calls share. They must outlive the calls.
struct EvaluateCallEnvironment {
  VersionRegistry& registry;
  Store& store;
  // Budget of all evaluations together.
  MemoryBudget& memory;
  // Queues of the threads that map rows and of those that learn.
  JobQueue& ingest;
  JobQueue& learning;
  // Number of evaluations in progress.
  std::atomic<int>& running;
  // How long a client may keep an evaluation waiting.
  absl::Duration idle_timeout;
  // Yields to Transforms. Called between tiles, on the threads that map rows and on those that
  // learn.
  std::function<void()> yield;
};

// Invariants:
//   1. The next message is read only after an ingest thread has processed the previous one, which
//      it reads in place.
//   2. At most one write is in progress. Of the progress made during a write, only the newest is
//      sent, after that write.
//   3. While a task works on the job, the job belongs to the task, and otherwise to the call.
//   4. When the call ends, its queued work is withdrawn, and running work stops at its next
//      checkpoint. So no thread works for a client that has left.
class EvaluateCall final : public TypedStreamCall<v1::EvaluateRequest> {
 public:
  EvaluateCall(const CallStart& start, const EvaluateCallEnvironment& environment);

 private:
  using Job = std::shared_ptr<EvaluationJob>;
  using Framed = std::shared_ptr<const OutputBytes>;
  // The message that the client may send next.
  enum class Expects { kSpec, kExamples, kNothing };

  void Start() override;
  void OnRequest() override;
  void OnRequestsEnd() override;
  void OnWritten() override;
  void OnEnd(const absl::Status& status) override;

  // Each handles the message in request().
  void TakeSpec();
  void Resolved(const EvaluationSpec& spec, absl::StatusOr<VersionHandle> version);
  void TakeExamples();
  void TakeFinish();
  absl::StatusOr<ExamplesView> ReadExamples();
  // Queues `piece`, and gives it the job.
  void Queue(JobQueue& queue, std::function<void(Job)> piece);
  void SetState(v1::EvaluateProgress::State state);
  // Writes the next event, if there is one and no write is in progress.
  void Tell();

  // The next functions run on an ingest thread. AskService asks the version's kernel service for
  // the values of `rows`, which follow `rows_before` earlier rows, and continues with the values.
  void AskService(const VersionHandle& version, const ExamplesView& rows, int64_t rows_before);
  absl::Status AddValues(EvaluationJob& job, const KernelRows& values);
  absl::Status Add(EvaluationJob& job, const ExamplesView& rows);
  // Returns the job to the call, or ends the call if `added` is an error or the call has ended.
  void Added(Job job, const absl::Status& added);
  // The next functions run on a learning thread.
  void LearnNow(Job job);
  absl::StatusOr<Framed> Learn(EvaluationJob& job);
  absl::Status Report(int fold, double fraction);
  // Yields to Transforms if the last yield was long enough ago. Returns an error if the client has
  // left. Runs on ingest threads and on learning threads.
  absl::Status LookUp();
  // Ends the call. May be called on any thread.
  void FinishSoon(const absl::Status& status);

  const EvaluateCallEnvironment& environment_;
  Expects expects_ = Expects::kSpec;
  Job job_;
  v1::EvaluateProgress progress_;
  bool changed_ = false;
  Framed evaluation_;
  bool evaluation_told_ = false;
  std::atomic<bool> ended_{false};

  // Used only by the thread that works: the time at which LookUp last yielded, and the progress
  // last reported.
  absl::Time yielded_ = absl::InfinitePast();
  int told_fold_ = -1;
  double told_fraction_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_EVALUATION_EVALUATE_CALL_H_
