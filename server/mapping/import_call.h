// One Import call: receives the name of a mapping, chunks and a digest; sends the new version.
#ifndef PHIMAP_SERVER_MAPPING_IMPORT_CALL_H_
#define PHIMAP_SERVER_MAPPING_IMPORT_CALL_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/calls/stream_call.h"
#include "server/schedule/task_pool.h"
#include "server/versions/artifact_import.h"

namespace phimap {

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
  absl::Status TakeMapping(Artifact& artifact);
  absl::Status TakeChunk(Artifact& artifact);
  absl::StatusOr<std::shared_ptr<const OutputBytes>> TakeDigest(Artifact& artifact);

  const ImportEnvironment& environment_;
  Artifact artifact_;
  SharedPlaces::Place place_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_IMPORT_CALL_H_
