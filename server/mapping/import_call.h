// One Import: the name of a mapping, chunks and a digest in; the new version out.
#ifndef PHIMAP_SERVER_MAPPING_IMPORT_CALL_H_
#define PHIMAP_SERVER_MAPPING_IMPORT_CALL_H_

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/calls/stream_call.h"
#include "server/schedule/task_pool.h"
#include "server/versions/artifact_import.h"

namespace phimap {

// At once; each may hold an artifact in memory.
inline constexpr int kMaxImports = 16;

// Services that imports use; outlives them.
struct ImportEnvironment {
  Store& store;
  VersionRegistry& registry;
  // Shared with builds.
  MemoryBudget& memory;
  // One thread: one artifact is reviewed at a time.
  TaskPool& pool;
  // Imports under way.
  std::atomic<int>& running;
  // Time for which a client may keep an import waiting.
  absl::Duration idle_timeout;
  const Logger& logger;
};

// Invariants:
//   1. The next message is asked for only after the one before was taken, on the pool: a client
//      that is faster is held back by HTTP/2 flow control.
//   2. The artifact belongs to the task that takes a message, and otherwise
//      to the call. A call that ends gives it up; an artifact that was already stored stays stored.
class ImportCall final : public TypedStreamCall<v1::ImportRequest> {
 public:
  ImportCall(const CallStart& start, const ImportEnvironment& environment);

 private:
  using Artifact = std::shared_ptr<ArtifactImport>;

  void Start() override;
  void OnRequest() override;
  void OnRequestsEnd() override;
  void OnWritten() override;
  void OnEnd(const absl::Status& status) override;

  // On the pool, each: takes the message in request().
  void Take(Artifact artifact);
  // The framed answer once the digest has arrived; null before.
  absl::StatusOr<std::shared_ptr<const OutputBytes>> TakeMessage(Artifact& artifact);
  absl::Status TakeMapping(Artifact& artifact);
  absl::Status TakeChunk(Artifact& artifact);
  absl::StatusOr<std::shared_ptr<const OutputBytes>> TakeDigest(Artifact& artifact);

  const ImportEnvironment& environment_;
  Artifact artifact_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_IMPORT_CALL_H_
