// One Evaluate: spec, labeled examples, finish in; progress, the evaluation out.
#ifndef PHIMAP_SERVER_RPC_EVALUATE_CALL_H_
#define PHIMAP_SERVER_RPC_EVALUATE_CALL_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/support/server_callback.h"
#include "phimap/v1/evaluation_service.pb.h"
#include "server/build/job_queue.h"
#include "server/build/memory_budget.h"
#include "server/evaluate/evaluation_job.h"
#include "server/registry/version_registry.h"
#include "server/rpc/idle_alarm.h"
#include "server/rpc/rpc_scope.h"
#include "server/store/store.h"
#include "server/sync/mutex.h"

namespace phimap {

// At once; each may hold rows in memory.
inline constexpr int kMaxEvaluations = 16;

// Invariants:
//   1. A message is read only after the one before was taken, on an ingest thread: one block of
//   rows
//      beside those kept is in memory, and a client that is faster is held back by HTTP/2 flow
//      control.
//   2. One write at most is under way; of the progress that happens meanwhile only the newest is
//      told.
//   3. gRPC hears of every read that was decided on before it hears of the end: Finish is called
//      only when starting_reads_ is 0 (as in build_call.h).
//   4. Whoever sets end_ first decides how the call ends. What waits in a queue then is withdrawn,
//      and what runs stops at its next look: no thread works for a client that is gone.
// Keeps itself alive until OnDone; tasks and the alarm on their way keep it alive beyond.
class EvaluateCall final : public grpc::ServerBidiReactor<grpc::ByteBuffer, v1::EvaluateResponse>,
                           public std::enable_shared_from_this<EvaluateCall> {
 public:
  // What the call works with; all outlive it.
  struct Environment {
    VersionRegistry& registry;
    Store& store;
    // Shared with builds.
    MemoryBudget& memory;
    // Threads that map rows, and that learn.
    JobQueue& ingest;
    JobQueue& learning;
    // Evaluations under way.
    std::atomic<int>& running;
    // How long a client may be silent.
    absl::Duration idle_timeout;
    // Called on both kinds of threads between tiles: lets Transforms pass.
    std::function<void()> yield;
    const Logger& logger;
  };
  EvaluateCall(const Environment& environment, const RpcMethod& method,
               const grpc::CallbackServerContext& context);
  ~EvaluateCall() override;

  void Start();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // What the next message may be.
  enum class Expects { kSpec, kExamples, kNothing };
  // What to do after the lock is released.
  struct Step {
    bool read = false;
    bool write = false;
    bool finish = false;
    absl::Status status;
  };

  // Each takes the message in request_.
  void TakeSpec();
  void Resolved(EvaluationSpec spec, absl::StatusOr<VersionHandle> version);
  void TakeExamples();
  void TakeFinish();
  void StreamEnded();
  absl::StatusOr<ExamplesView> ReadExamples() const;
  // Asks the version's kernel service about rows, and goes on with its values.
  void AskService(const ExamplesView& rows);
  void Answered(absl::string_view field, absl::StatusOr<KernelRows> values);
  // On an ingest thread.
  void AddNow(const ExamplesView& rows);
  // On a learning thread.
  void LearnNow();
  // Submits a piece of work, unless the call has ended.
  void Queue(JobQueue& queue, JobQueue::Task task);
  // Takes what waits for this call out of the queues.
  void Withdraw();
  // Whether to go on; lets Transforms pass.
  absl::Status LookUp();
  absl::Status Report(int fold, double fraction);
  // For the alarm.
  std::optional<absl::Time> WaitingSince() ABSL_LOCKS_EXCLUDED(mutex_);
  bool Ended() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the call with `error`, if nothing else has.
  void Fail(const absl::Status& error) ABSL_LOCKS_EXCLUDED(mutex_);
  void WantRead() ABSL_LOCKS_EXCLUDED(mutex_);
  void Tell(v1::EvaluateProgress::State state) ABSL_LOCKS_EXCLUDED(mutex_);
  // Decides under the lock, acts after it: gRPC may call back at once.
  void Advance() ABSL_LOCKS_EXCLUDED(mutex_);
  Step NextStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts the next event into response_; false when there is none.
  bool NextEvent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Environment environment_;
  RpcScope scope_;
  std::shared_ptr<EvaluateCall> self_;
  // Evaluations that were under way before this one.
  const int under_way_;
  // Of whoever handles the message that was read: gRPC, then one thread at a time. Its bytes, until
  // it is parsed.
  grpc::ByteBuffer bytes_;
  v1::EvaluateRequest request_;
  Expects expects_ = Expects::kSpec;
  std::unique_ptr<EvaluationJob> job_;
  // When LookUp let Transforms pass; of the thread that works.
  absl::Time yielded_ = absl::InfinitePast();

  Mutex mutex_;
  v1::EvaluateProgress progress_ ABSL_GUARDED_BY(mutex_);
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<v1::Evaluation> evaluation_ ABSL_GUARDED_BY(mutex_);
  bool evaluation_told_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  bool want_read_ ABSL_GUARDED_BY(mutex_) = false;
  int starting_reads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  // Since when a message is awaited; InfiniteFuture while none is.
  absl::Time waiting_since_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  // gRPC's while writing_.
  v1::EvaluateResponse response_;
  std::optional<IdleAlarm> idle_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_EVALUATE_CALL_H_
