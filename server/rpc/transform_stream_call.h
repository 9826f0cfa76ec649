// One TransformStream: requests in, features out, in order, several on the way at once.
#ifndef PHIMAP_SERVER_RPC_TRANSFORM_STREAM_CALL_H_
#define PHIMAP_SERVER_RPC_TRANSFORM_STREAM_CALL_H_

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/support/server_callback.h"
#include "phimap/v1/transform_service.pb.h"
#include "server/rpc/rpc_scope.h"
#include "server/rpc/transform_path.h"
#include "server/sync/mutex.h"

namespace phimap {

// Invariants:
//   1. slots_ holds the requests that were read and not answered, in their order; answers leave
//   from its front.
//   2. One read and one write at most are under way. The next request is read only while the window
//   has room: a client
//      that does not fetch its answers stops sending by HTTP/2 flow control, and the call's memory
//      is bounded.
//   3. Requests go to the scheduler in their order, one after another. What it has no room for
//   waits for room, and nothing more is read meanwhile: a stream is slowed, not refused. Those
//   before it are computed and sent without it, so it never waits for room that its own call keeps.
//   4. The call ends when nothing of it is on a worker: with OK after the last answer, with the
//   error of the earliest
//      request at fault after the answers before it, or with CANCELLED.
// Keeps itself alive until OnDone, and callbacks on their way keep it alive beyond.
class TransformStreamCall final
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, v1::TransformStreamResponse>,
      public std::enable_shared_from_this<TransformStreamCall> {
 public:
  TransformStreamCall(const TransformEnvironment& environment, const RpcMethod& method,
                      const grpc::CallbackServerContext& context);

  void Start();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // One request and its answer.
  struct Slot {
    int64_t number = 0;
    absl::Time received;
    // As it came, until it is parsed.
    grpc::ByteBuffer bytes;
    v1::TransformStreamRequest request;
    v1::TransformStreamResponse response;
    // What it takes of the window: request and answer.
    int64_t window_bytes = 0;
    AnswerBudget::Held answer;
    bool done = false;
    absl::Status status;
  };
  // What to do after the lock is released.
  struct Step {
    Slot* read = nullptr;
    const v1::TransformStreamResponse* write = nullptr;
    bool finish = false;
    absl::Status status;
  };

  enum class Submitted { kYes, kNoRoom };

  // The slot that a read has filled.
  Slot* Incoming() ABSL_LOCKS_EXCLUDED(mutex_);
  void ReadsEnded() ABSL_LOCKS_EXCLUDED(mutex_);
  void Resolve(Slot* slot);
  // Puts a request whose version is known into the line for the scheduler, which has the order of
  // slots_: what waits for room must not wait behind an answer that waits for it.
  void Enqueue(Slot* slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Hands the line over, as far as there is room. Returns at once if another thread does.
  void SubmitLine() ABSL_LOCKS_EXCLUDED(mutex_);
  Slot* BeginSubmit() ABSL_LOCKS_EXCLUDED(mutex_);
  // kYes also if it failed for good.
  Submitted Submit(Slot* slot) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether reading goes on, which a full line had stopped.
  bool EndSubmit(Submitted submitted) ABSL_LOCKS_EXCLUDED(mutex_);
  void ListenForRoom() ABSL_LOCKS_EXCLUDED(mutex_);
  // The client is gone: no more is read or written, and what is in line or with the scheduler is
  // given up.
  void Break() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckLater(const Slot& slot) const;
  void SlotDone(Slot* slot, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Decides under the lock, acts after it: gRPC may call back at once.
  void Advance() ABSL_LOCKS_EXCLUDED(mutex_);
  Step NextStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WindowHasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts a request whose version is known, answer included, before the next is read.
  void TakeWindow(Slot& slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TransformEnvironment& environment_;
  RpcScope scope_;
  std::shared_ptr<TransformStreamCall> self_;
  // Written once, before the second request is read.
  VersionHandle version_;

  Mutex mutex_;
  std::deque<std::unique_ptr<Slot>> slots_ ABSL_GUARDED_BY(mutex_);
  // The slot that is being read into; not in slots_ yet.
  std::unique_ptr<Slot> incoming_ ABSL_GUARDED_BY(mutex_);
  int64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t window_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Requests that wait for the version or are with the scheduler.
  int outstanding_ ABSL_GUARDED_BY(mutex_) = 0;
  bool resolving_ ABSL_GUARDED_BY(mutex_) = false;
  // Requests that are not with the scheduler yet, in their order; whether a thread hands them over;
  // and else, whether the first waits for room.
  std::deque<Slot*> line_ ABSL_GUARDED_BY(mutex_);
  bool submitting_ ABSL_GUARDED_BY(mutex_) = false;
  bool waits_for_room_ ABSL_GUARDED_BY(mutex_) = false;
  // Whether the scheduler's watch has a callback of this call.
  bool listening_ ABSL_GUARDED_BY(mutex_) = false;
  bool reads_done_ ABSL_GUARDED_BY(mutex_) = false;
  // Reads that were decided on and that gRPC may not know of yet: it must not hear of the end
  // first. A count, because the read may complete, and the next be decided on by another thread,
  // before the first thread is back.
  int starting_reads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSFORM_STREAM_CALL_H_
