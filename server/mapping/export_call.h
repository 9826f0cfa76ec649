// One Export call: receives a reference, sends the artifact in chunks.
#ifndef PHIMAP_SERVER_MAPPING_EXPORT_CALL_H_
#define PHIMAP_SERVER_MAPPING_EXPORT_CALL_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/calls/stream_call.h"
#include "server/memory/caller_shares.h"
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
};

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

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_EXPORT_CALL_H_
