// One Import: the name of a mapping, chunks and a digest in; the new version out.
#ifndef PHIMAP_SERVER_RPC_IMPORT_CALL_H_
#define PHIMAP_SERVER_RPC_IMPORT_CALL_H_

#include <atomic>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/server_callback.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/build/artifact_import.h"
#include "server/rpc/idle_alarm.h"
#include "server/rpc/rpc_scope.h"
#include "server/schedule/task_pool.h"
#include "server/sync/mutex.h"

namespace phimap {

// At once; each may hold an artifact in memory.
inline constexpr int kMaxImports = 16;

// Invariants:
//   1. A message is read only after the one before was taken, on the pool: one chunk beside the
//      artifact is in memory, and a client that is faster is held back by HTTP/2 flow control.
//   2. gRPC hears of every read that was decided on before it hears of the end: Finish is called
//      only when starting_reads_ is 0 (as in build_call.h).
//   3. Whoever sets end_ first decides how the call ends; the rest is ignored. What is stored when
//      the client goes away in the last moment stays stored.
// Keeps itself alive until OnDone; tasks and the alarm on their way keep it alive beyond.
class ImportCall final : public grpc::ServerReadReactor<grpc::ByteBuffer>,
                         public std::enable_shared_from_this<ImportCall> {
 public:
  // What the call works with; all outlive it.
  struct Environment {
    Store& store;
    VersionRegistry& registry;
    // Shared with builds.
    MemoryBudget& memory;
    // One thread: one artifact is reviewed at a time.
    TaskPool& pool;
    // Imports under way.
    std::atomic<int>& running;
    // How long a client may be silent.
    absl::Duration idle_timeout;
    const Logger& logger;
  };
  ImportCall(const Environment& environment, const RpcMethod& method,
             const grpc::CallbackServerContext& context, v1::Version* response);
  ~ImportCall() override;

  void Start();

  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  struct Step {
    bool read = false;
    bool finish = false;
    absl::Status status;
  };

  // On the pool: takes the message in request_.
  void Take();
  absl::Status TakeMessage();
  absl::Status TakeMapping();
  absl::Status TakeChunk();
  absl::Status TakeDigest();
  // For the alarm.
  std::optional<absl::Time> WaitingSince() ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void WantRead() ABSL_LOCKS_EXCLUDED(mutex_);
  // Decides under the lock, acts after it: gRPC may call back at once.
  void Advance() ABSL_LOCKS_EXCLUDED(mutex_);
  Step NextStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Environment environment_;
  RpcScope scope_;
  // gRPC's; touched before the end only.
  v1::Version* const response_;
  std::shared_ptr<ImportCall> self_;
  // Imports that were under way before this one.
  const int under_way_;
  // Of whoever handles the message that was read: gRPC, then the pool. Its bytes, until it is
  // parsed.
  grpc::ByteBuffer bytes_;
  v1::ImportRequest request_;
  std::optional<ArtifactImport> import_;
  v1::Version version_;
  bool done_ = false;

  Mutex mutex_;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  bool want_read_ ABSL_GUARDED_BY(mutex_) = false;
  int starting_reads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  // Since when a message is awaited; InfiniteFuture while none is.
  absl::Time waiting_since_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::optional<IdleAlarm> idle_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_IMPORT_CALL_H_
