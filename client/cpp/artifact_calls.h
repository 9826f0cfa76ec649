// Export and Import calls. Includes gRPC: for .cc files only.
#ifndef PHIMAP_CLIENT_CPP_ARTIFACT_CALLS_H_
#define PHIMAP_CLIENT_CPP_ARTIFACT_CALLS_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/cpp/cancel_token.h"
#include "client/cpp/client.h"
#include "client/cpp/revision_memory.h"
#include "phimap/v1/mapping_service.grpc.pb.h"

namespace phimap::client {

// Implement Client::Export and Client::Import. Both block and hold one chunk in memory at a time.
absl::StatusOr<ExportResult> CallExport(v1::MappingService::StubInterface& stub,
                                        RevisionMemory& revisions, const std::string& reference,
                                        const ArtifactSink& sink, CancelToken& cancel);
absl::StatusOr<v1::Version> CallImport(v1::MappingService::StubInterface& stub,
                                       RevisionMemory& revisions, const std::string& mapping,
                                       const ArtifactSource& source, CancelToken& cancel);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_ARTIFACT_CALLS_H_
