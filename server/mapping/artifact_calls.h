// The calls that move artifacts between servers: Export sends one in chunks, Import receives one.
#ifndef PHIMAP_SERVER_MAPPING_ARTIFACT_CALLS_H_
#define PHIMAP_SERVER_MAPPING_ARTIFACT_CALLS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/admission/caller_shares.h"
#include "server/mapping/artifact_import.h"
#include "server/rpc/call.h"
#include "server/schedule/task_pool.h"
#include "server/store/store.h"

namespace phimap {

// Maximum number of concurrent exports. Each holds a file open.
inline constexpr int kMaxExports = 64;

// Objects that the export calls share. They must outlive the calls.
struct ExportEnvironment {
  Store& store;
  TaskPool& store_pool;
  SharedPlaces& places;
  // A client that reads nothing for this long is disconnected, because it would keep others from
  // exporting.
  absl::Duration idle_timeout;
  const Logger& logger;
};

// One Export call: receives a reference, sends the artifact in chunks.
//
// A call reads a chunk, sends it, and frees it before it reads the next. So a slow client costs the
// memory of one chunk, however large the artifact is. Reading, on the store's threads, and writing
// alternate.
class ExportCall final : public TypedStreamCall<v1::ExportRequest> {
 public:
  ExportCall(const CallStart& start, const ExportEnvironment& environment);

 private:
  void Start() override;
  void OnRequest() override;
  void OnRequestsEnd() override;
  void OnWritten() override;
  void OnEnd(const absl::Status& status) override;

  void QueueNext();
  // Run on a store thread. Next and Read return the next chunk, framed, or null at the end of the
  // artifact.
  absl::StatusOr<std::shared_ptr<const OutputBytes>> Next();
  absl::StatusOr<std::shared_ptr<const OutputBytes>> Read();
  absl::Status Open(v1::ArtifactChunk& first);

  const ExportEnvironment& environment_;
  // Used only by the store thread that reads.
  std::unique_ptr<ArtifactReader> reader_;
  int64_t offset_bytes_ = 0;
  SharedPlaces::Place place_;
};

// Maximum number of concurrent imports. Each may hold an artifact in memory.
inline constexpr int kMaxImports = 16;

// Objects that the import calls share. They must outlive the calls.
struct ImportEnvironment {
  Store& store;
  VersionRegistry& registry;
  // Shared with builds.
  MemoryBudget& memory;
  // Has one thread, so that one artifact is reviewed at a time.
  TaskPool& pool;
  SharedPlaces& places;
  // How long a client may keep an import waiting.
  absl::Duration idle_timeout;
  const Logger& logger;
};

// One Import call: receives the name of a mapping, chunks and a digest; sends the new version.
//
// Invariants:
//   1. The next message is read only after the pool has processed the previous one. So HTTP/2 flow
//      control holds back a faster client.
//   2. While a task processes a message, the artifact belongs to the task, and otherwise to the
//      call. A call that ends drops the artifact. An artifact that was already stored stays stored.
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

  // The next functions run on the pool. Each processes the message in request().
  void Take(Artifact artifact);
  // Returns the answer, framed, once the digest has arrived, and null before.
  absl::StatusOr<std::shared_ptr<const OutputBytes>> TakeMessage(Artifact& artifact);
  absl::Status TakeName(Artifact& artifact);
  absl::Status TakeChunk(Artifact& artifact);
  absl::StatusOr<std::shared_ptr<const OutputBytes>> TakeDigest(Artifact& artifact);

  const ImportEnvironment& environment_;
  Artifact artifact_;
  SharedPlaces::Place place_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_ARTIFACT_CALLS_H_
