#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/calls.h"
#include "client/cpp/grpc_status.h"
#include "core/digest/sha256.h"
#include "core/status/status_macros.h"
#include "proto/chunk/artifact_chunk.h"

namespace phimap::client {
namespace {

using ChunkReader = grpc::ClientReaderInterface<v1::ArtifactChunk>;

// Reads chunks until the stream ends, or CheckChunk or the sink returns an error.
absl::Status Receive(ChunkReader& reader, const ArtifactSink& sink, ExportResult& result,
                     Sha256& hash, int64_t& received) {
  v1::ArtifactChunk chunk;
  while (reader.Read(&chunk)) {
    PHIMAP_RETURN_IF_ERROR(CheckChunk(chunk, received));
    if (received == 0) {
      result.version = chunk.version();
      result.size_bytes = chunk.artifact_size_bytes();
    }
    received += static_cast<int64_t>(chunk.data().size());
    hash.Update(chunk.data());
    PHIMAP_RETURN_IF_ERROR(sink(chunk.data()));
  }
  return absl::OkStatus();
}

absl::Status CheckWhole(const ExportResult& result, int64_t received, const std::string& digest) {
  if (received != result.size_bytes) {
    return absl::DataLossError(absl::StrCat("the server sent ", received, " of the artifact's ",
                                            result.size_bytes, " bytes"));
  }
  if (digest == result.version.digest()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the artifact has the SHA-256 ", digest,
                                          "; the server says ", result.version.digest()));
}

}  // namespace

absl::StatusOr<ExportResult> CallExport(v1::MappingService::StubInterface& stub,
                                        RevisionMemory& revisions, const std::string& reference,
                                        const ArtifactSink& sink, CancelToken& cancel) {
  grpc::ClientContext context;
  const CancelToken::Registration registration = cancel.OnCancel([&] { context.TryCancel(); });
  const RevisionMemory::Asked asked = revisions.AddTo(context);
  v1::ExportRequest request;
  request.set_reference(reference);
  const std::unique_ptr<ChunkReader> reader = stub.Export(&context, request);
  ExportResult result;
  Sha256 hash;
  int64_t received = 0;
  const absl::Status taken = Receive(*reader, sink, result, hash, received);
  if (!taken.ok()) {
    context.TryCancel();
    reader->Finish();  // Its status is ignored: `taken` has the cause.
    return taken;
  }
  const absl::Status status = FromGrpc(reader->Finish());
  revisions.Note(context, status, asked);
  PHIMAP_RETURN_IF_ERROR(status);
  PHIMAP_RETURN_IF_ERROR(CheckWhole(result, received, hash.Hex()));
  return result;
}

absl::StatusOr<v1::Version> CallImport(v1::MappingService::StubInterface& stub,
                                       RevisionMemory& revisions, const std::string& name,
                                       const ArtifactSource& source, CancelToken& cancel) {
  grpc::ClientContext context;
  const CancelToken::Registration registration = cancel.OnCancel([&] { context.TryCancel(); });
  // An import depends on no earlier change.
  const RevisionMemory::Asked asked = revisions.AskingForNone();
  v1::Version version;
  const std::unique_ptr<grpc::ClientWriterInterface<v1::ImportRequest>> writer =
      stub.Import(&context, &version);
  v1::ImportRequest request;
  request.set_name(name);
  // A failed write means that the server has answered: Finish returns its status.
  bool open = writer->Write(request);
  Sha256 hash;
  int64_t sent = 0;
  while (open) {
    absl::StatusOr<std::string> piece = source(kSentChunkBytes);
    if (!piece.ok()) {
      context.TryCancel();
      writer->Finish();
      return piece.status();
    }
    if (piece->empty()) break;
    hash.Update(*piece);
    const auto size = static_cast<int64_t>(piece->size());
    FillChunk(sent, *std::move(piece), *request.mutable_chunk());
    sent += size;
    open = writer->Write(request);
  }
  if (open) {
    request.set_digest(hash.Hex());
    if (writer->Write(request)) writer->WritesDone();
  }
  const absl::Status status = FromGrpc(writer->Finish());
  revisions.Note(context, status, asked);
  PHIMAP_RETURN_IF_ERROR(status);
  return version;
}

}  // namespace phimap::client
