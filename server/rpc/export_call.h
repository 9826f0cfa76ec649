// One Export: a reference in, the artifact out, chunk by chunk.
#ifndef PHIMAP_SERVER_RPC_EXPORT_CALL_H_
#define PHIMAP_SERVER_RPC_EXPORT_CALL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/server_callback.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/rpc/idle_alarm.h"
#include "server/rpc/rpc_scope.h"
#include "server/schedule/task_pool.h"
#include "server/store/store.h"
#include "server/sync/mutex.h"

namespace phimap {

// At once; each holds a file open.
inline constexpr int kMaxExports = 64;

// One chunk is read, sent, and gone before the next is read: a client that is slow costs one chunk,
// however large the artifact is. Reading and writing take turns, so nothing of the call happens at
// the same time as anything else of it, but for OnCancel and the watch on a client that does not
// read. Owns itself until OnDone.
class ExportCall final : public grpc::ServerWriteReactor<v1::ArtifactChunk>,
                         public std::enable_shared_from_this<ExportCall> {
 public:
  // What the call works with; all outlive it.
  struct Environment {
    Store& store;
    TaskPool& store_pool;
    // Exports under way.
    std::atomic<int>& running;
    // A client that takes nothing for so long is let go: it would keep others from exporting.
    absl::Duration idle_timeout;
    const Logger& logger;
  };
  ExportCall(const Environment& environment, const RpcMethod& method,
             const grpc::CallbackServerContext& context, const v1::ExportRequest& request);
  ~ExportCall() override;

  void Start();

  void OnWriteDone(bool ok) override;
  void OnCancel() override { scope_.Cancel(); }
  void OnDone() override { self_.reset(); }

 private:
  void QueueNext();
  // On a store thread: reads the next chunk and sends it, or ends the call.
  void Next();
  absl::Status Read();
  absl::Status Open();
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // For the alarm. A status would wait behind the chunk that is not taken: the call is cancelled,
  // which makes the write fail.
  std::optional<absl::Time> WritingSince() ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveUp() ABSL_LOCKS_EXCLUDED(mutex_);

  const Environment environment_;
  const grpc::CallbackServerContext& context_;
  RpcScope scope_;
  const v1::ExportRequest& request_;
  // Exports that were under way before this one.
  const int under_way_;
  std::unique_ptr<ArtifactReader> reader_;
  int64_t offset_bytes_ = 0;
  // Empty at the end of the artifact.
  v1::ArtifactChunk chunk_;

  Mutex mutex_;
  // Since when a chunk is on its way; InfiniteFuture while none is.
  absl::Time writing_since_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  bool silent_ ABSL_GUARDED_BY(mutex_) = false;
  // The context is gone soon after.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<IdleAlarm> idle_;
  std::shared_ptr<ExportCall> self_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_EXPORT_CALL_H_
