#include "server/mapping/artifact_calls.h"

#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "proto/chunk/artifact_chunk.h"
#include "server/mapping/mapping_to_proto.h"
#include "server/registry/reference.h"
#include "server/rpc/call.h"
#include "server/transform/row_messages.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// Delay after which a client may try again.
constexpr int64_t kRetryMs = 1000;

absl::Status TooManyExports(absl::string_view limits) {
  return MakeError(Code::kResourceExhausted, reason::kExportLimitReached, "",
                   absl::StrCat("too many exports are under way; the limit is ", limits),
                   {{"limit", absl::StrCat(kMaxExports)}}, kRetryMs);
}

}  // namespace

ExportCall::ExportCall(const CallStart& start, const ExportEnvironment& environment)
    : TypedStreamCall(start), environment_(environment) {}

void ExportCall::Start() {
  std::optional<SharedPlaces::Place> place = environment_.places.Take(caller());
  if (!place.has_value()) return Finish(TooManyExports(environment_.places.Text(caller())));
  place_ = *std::move(place);
  SetIdleLimit(environment_.idle_timeout);
  ReadNext();
}

// Input after the first message is ignored.
void ExportCall::OnRequest() {
  absl::Status allowed = CheckReference(*this, request().reference());
  if (allowed.ok()) allowed = CheckExport();
  allowed.ok() ? QueueNext() : Finish(allowed);
}

void ExportCall::OnRequestsEnd() { Finish(WrongMessageCount(request().GetTypeName(), "none")); }

void ExportCall::QueueNext() {
  const absl::Status queued = environment_.store_pool.Submit(
      [this, self = shared_from_this()] {
        Post([this, next = Next()] {
          if (!next.ok()) return Finish(next.status());
          *next == nullptr ? Finish(absl::OkStatus()) : Write(*next);
        });
      },
      caller());
  if (!queued.ok()) Finish(queued);
}

absl::StatusOr<std::shared_ptr<const OutputBytes>> ExportCall::Next() {
  if (cancelled()->load()) return absl::CancelledError("the client cancelled the call");
  try {
    return Read();
  } catch (const std::bad_alloc&) {
    return MakeError(Code::kResourceExhausted, reason::kMachineMemoryFull, "",
                     "not enough memory for a chunk", {}, kRetryMs);
  }
}

absl::StatusOr<std::shared_ptr<const OutputBytes>> ExportCall::Read() {
  v1::ArtifactChunk chunk;
  if (reader_ == nullptr) PHIMAP_RETURN_IF_ERROR(Open(chunk));
  PHIMAP_ASSIGN_OR_RETURN(std::string piece, reader_->Next(kSentChunkBytes));
  if (piece.empty()) return nullptr;
  const int64_t offset = offset_bytes_;
  offset_bytes_ += static_cast<int64_t>(piece.size());
  FillChunk(offset, std::move(piece), chunk);
  return Frame(chunk);
}

absl::Status ExportCall::Open(v1::ArtifactChunk& first) {
  PHIMAP_ASSIGN_OR_RETURN(const Reference reference, ParseReference(request().reference()));
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const VersionRecord record,
                            LookUpVersion(environment_.store, reference));
    absl::StatusOr<std::unique_ptr<ArtifactReader>> reader =
        environment_.store.OpenArtifact(record.digest);
    // The version was deleted after the look-up. Its name may now mean another version, or none.
    if (absl::IsNotFound(reader.status())) continue;
    PHIMAP_RETURN_IF_ERROR(reader.status());
    reader_ = *std::move(reader);
    RefToProto(record, first.mutable_version());
    first.set_artifact_size_bytes(reader_->size_bytes());
    // An artifact holds rows that it was built from, so it is said who takes it.
    const ChangeOrigin origin = Origin();
    environment_.logger.Log(LogLevel::kInfo, "export_begun",
                            {{"mapping", record.mapping},
                             {"version", record.number},
                             {"digest", record.digest},
                             {"peer", origin.peer},
                             {"caller", origin.principal},
                             {"request_id", origin.request_id},
                             {"trace_id", origin.trace_id}});
    return absl::OkStatus();
  }
}

void ExportCall::OnWritten() { QueueNext(); }

void ExportCall::OnEnd(const absl::Status&) { place_ = SharedPlaces::Place(); }

namespace {

absl::Status TooManyImports(absl::string_view limits) {
  return MakeError(Code::kResourceExhausted, reason::kImportLimitReached, "",
                   absl::StrCat("too many imports are under way; the limit is ", limits),
                   {{"limit", absl::StrCat(kMaxImports)}}, kRetryMs);
}

absl::Status NoMapping() { return Unexpected("name", "the mapping's name in the first message"); }

}  // namespace

ImportCall::ImportCall(const CallStart& start, const ImportEnvironment& environment)
    : TypedStreamCall(start), environment_(environment) {}

void ImportCall::Start() {
  std::optional<SharedPlaces::Place> place = environment_.places.Take(caller());
  if (!place.has_value()) return Finish(TooManyImports(environment_.places.Text(caller())));
  place_ = *std::move(place);
  SetIdleLimit(environment_.idle_timeout);
  ReadNext();
}

void ImportCall::OnRequest() {
  const absl::Status queued = environment_.pool.Submit(
      [this, self = shared_from_this(), artifact = std::exchange(artifact_, nullptr)]() mutable {
        Take(std::move(artifact));
      });
  if (!queued.ok()) Finish(queued);
}

void ImportCall::OnRequestsEnd() {
  if (artifact_ == nullptr) {
    return Finish(
        Unexpected("name", "the mapping's name in the first message, but the stream ended"));
  }
  Finish(Unexpected("digest", "the digest at the end of the stream; nothing was stored"));
}

void ImportCall::Take(Artifact artifact) {
  absl::StatusOr<std::shared_ptr<const OutputBytes>> taken;
  try {
    taken = cancelled()->load() ? ClientGone() : TakeMessage(artifact);
  } catch (const std::bad_alloc&) {
    taken = MakeError(Code::kResourceExhausted, reason::kMachineMemoryFull, "",
                      "not enough memory for this artifact", {}, kRetryMs);
  }
  if (taken.ok() && *taken == nullptr) {
    return Post([this, artifact = std::move(artifact)] {
      artifact_ = artifact;
      ReadNext();
    });
  }
  // Frees the artifact's memory before the client gets the answer.
  artifact.reset();
  Post([this, taken = std::move(taken)] { taken.ok() ? Write(*taken) : Finish(taken.status()); });
}

absl::StatusOr<std::shared_ptr<const OutputBytes>> ImportCall::TakeMessage(Artifact& artifact) {
  switch (request().message_case()) {
    case v1::ImportRequest::kName:
      PHIMAP_RETURN_IF_ERROR(TakeName(artifact));
      return nullptr;
    case v1::ImportRequest::kChunk:
      PHIMAP_RETURN_IF_ERROR(TakeChunk(artifact));
      return nullptr;
    case v1::ImportRequest::kDigest:
      return TakeDigest(artifact);
    case v1::ImportRequest::MESSAGE_NOT_SET:
      break;
  }
  return Unexpected("message", "name, chunk or digest, got none");
}

absl::Status ImportCall::TakeName(Artifact& artifact) {
  if (artifact != nullptr)
    return Unexpected("name", "the mapping's name in the first message only");
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request().name(), "name"));
  PHIMAP_RETURN_IF_ERROR(CheckNewVersion(request().name()));
  // The caller's share is checked once the digest is known: what is there already adds nothing.
  PHIMAP_RETURN_IF_ERROR(Spend(Rated::kBuilds, 1));
  artifact = std::make_shared<ArtifactImport>(request().name(), environment_.memory);
  return absl::OkStatus();
}

absl::Status ImportCall::TakeChunk(Artifact& artifact) {
  if (artifact == nullptr) return NoMapping();
  PHIMAP_RETURN_IF_ERROR(CheckChunk(request().chunk(), artifact->size_bytes()));
  return artifact->Append(request().chunk().data());
}

absl::StatusOr<std::shared_ptr<const OutputBytes>> ImportCall::TakeDigest(Artifact& artifact) {
  if (artifact == nullptr) return NoMapping();
  const ChangeOrigin origin = Origin();
  PHIMAP_ASSIGN_OR_RETURN(
      const CertifiedVersion version,
      artifact->Finish(request().digest(), environment_.store, environment_.registry, origin));
  environment_.logger.Log(LogLevel::kInfo, "version_imported",
                          {{"mapping", version.record.mapping},
                           {"version", version.record.number},
                           {"digest", version.record.digest},
                           {"peer", origin.peer},
                           {"caller", origin.principal},
                           {"request_id", origin.request_id},
                           {"trace_id", origin.trace_id}});
  v1::Version response;
  VersionToProto(version, &response);
  return Frame(response);
}

void ImportCall::OnWritten() { Finish(absl::OkStatus()); }

void ImportCall::OnEnd(const absl::Status&) {
  place_ = SharedPlaces::Place();
  if (artifact_ == nullptr) return;
  // Frees the artifact on the pool: to free hundreds of megabytes takes longer than a loop may
  // pause. If the pool is full, Submit frees it here.
  static_cast<void>(environment_.pool.Submit([artifact = std::exchange(artifact_, nullptr)] {}));
}

}  // namespace phimap
