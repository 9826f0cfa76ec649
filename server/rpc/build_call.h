// One Build: spec, examples, finish in; accepted, progress, version out.
#ifndef PHIMAP_SERVER_RPC_BUILD_CALL_H_
#define PHIMAP_SERVER_RPC_BUILD_CALL_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/server_callback.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/build/build_manager.h"
#include "server/rpc/rpc_scope.h"
#include "server/sync/mutex.h"

namespace phimap {

// Invariants:
//   1. A message is read only after the one before was taken by a build thread: one block of rows
//   is in memory, and a
//      client that is faster than the build is held back by HTTP/2 flow control.
//   2. One write at most is under way; of the progress that happens meanwhile only the newest is
//   told.
//   3. A call that opened the build (it did not attach) and ends before `finish` abandons it.
//   4. gRPC hears of every read that was decided on before it hears of the end: Finish is called
//      only when starting_reads_ is 0. After Finish comes OnDone, and the stream is gone; a read
//      started then would touch freed memory. It is a count because a read may complete, and the
//      next be decided on by another thread, before the thread that started it comes back.
// Keeps itself alive until OnDone, and callbacks on their way keep it alive beyond.
class BuildCall final : public grpc::ServerBidiReactor<grpc::ByteBuffer, v1::BuildResponse>,
                        public BuildObserver,
                        public std::enable_shared_from_this<BuildCall> {
 public:
  BuildCall(BuildManager& builds, const RpcMethod& method, const Logger& logger,
            const grpc::CallbackServerContext& context);

  void Start();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void OnBuildChanged() override;

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
  void Begun(absl::StatusOr<BuildManager::Attachment> begun);
  void TakeExamples();
  void TakeFinish();
  void StreamEnded();
  void WantRead() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the call with `error`, and the build with it if it still receives from here.
  void Fail(const absl::Status& error) ABSL_LOCKS_EXCLUDED(mutex_);
  // Decides under the lock, acts after it: gRPC may call back at once.
  void Advance() ABSL_LOCKS_EXCLUDED(mutex_);
  Step NextStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts the next event into response_; false when there is none.
  bool NextEvent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  BuildManager& builds_;
  RpcScope scope_;
  std::shared_ptr<BuildCall> self_;
  // Of whoever handles the message that was read: gRPC, then one thread at a time. Its bytes, until
  // it is parsed.
  grpc::ByteBuffer bytes_;
  v1::BuildRequest request_;
  Expects expects_ = Expects::kSpec;

  Mutex mutex_;
  // Set when the build has begun.
  std::shared_ptr<BuildJob> job_ ABSL_GUARDED_BY(mutex_);
  bool attached_ ABSL_GUARDED_BY(mutex_) = false;
  bool tell_accepted_ ABSL_GUARDED_BY(mutex_) = false;
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  bool version_told_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> error_ ABSL_GUARDED_BY(mutex_);
  bool want_read_ ABSL_GUARDED_BY(mutex_) = false;
  // Reads that were decided on under the lock and whose StartRead has not returned: invariant 4.
  int starting_reads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  // gRPC's while writing_.
  v1::BuildResponse response_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_BUILD_CALL_H_
