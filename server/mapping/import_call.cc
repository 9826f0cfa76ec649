#include "server/mapping/import_call.h"

#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "proto/artifact/artifact_chunk.h"
#include "server/calls/call_errors.h"
#include "server/mapping/version_to_proto.h"
#include "server/registry/reference.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

constexpr int64_t kImportRetryMs = 1000;

absl::Status TooManyImports(absl::string_view limits) {
  return MakeError(Code::kResourceExhausted, "IMPORT_LIMIT_REACHED", "",
                   absl::StrCat("too many imports are under way; the limit is ", limits),
                   {{"limit", absl::StrCat(kMaxImports)}}, kImportRetryMs);
}

absl::Status NoMapping() {
  return Unexpected("mapping", "the mapping's name in the first message");
}

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
        Unexpected("mapping", "the mapping's name in the first message, but the stream ended"));
  }
  Finish(Unexpected("digest", "the digest at the end of the stream; nothing was stored"));
}

void ImportCall::Take(Artifact artifact) {
  absl::StatusOr<std::shared_ptr<const OutputBytes>> taken;
  try {
    taken = cancelled()->load() ? ClientGone() : TakeMessage(artifact);
  } catch (const std::bad_alloc&) {
    taken = MakeError(Code::kResourceExhausted, "MACHINE_MEMORY_FULL", "",
                      "not enough memory for this artifact", {}, kImportRetryMs);
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
    case v1::ImportRequest::kMapping:
      PHIMAP_RETURN_IF_ERROR(TakeMapping(artifact));
      return nullptr;
    case v1::ImportRequest::kChunk:
      PHIMAP_RETURN_IF_ERROR(TakeChunk(artifact));
      return nullptr;
    case v1::ImportRequest::kDigest:
      return TakeDigest(artifact);
    case v1::ImportRequest::MESSAGE_NOT_SET:
      break;
  }
  return Unexpected("message", "mapping, chunk or digest, got none");
}

absl::Status ImportCall::TakeMapping(Artifact& artifact) {
  if (artifact != nullptr)
    return Unexpected("mapping", "the mapping's name in the first message only");
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request().mapping(), "mapping"));
  artifact = std::make_shared<ArtifactImport>(request().mapping(), environment_.memory);
  return absl::OkStatus();
}

absl::Status ImportCall::TakeChunk(Artifact& artifact) {
  if (artifact == nullptr) return NoMapping();
  PHIMAP_RETURN_IF_ERROR(CheckChunk(request().chunk(), artifact->size_bytes()));
  return artifact->Append(request().chunk().data());
}

absl::StatusOr<std::shared_ptr<const OutputBytes>> ImportCall::TakeDigest(Artifact& artifact) {
  if (artifact == nullptr) return NoMapping();
  PHIMAP_ASSIGN_OR_RETURN(
      const CertifiedVersion version,
      artifact->Finish(request().digest(), environment_.store, environment_.registry));
  environment_.logger.Log(LogLevel::kInfo, "version_imported",
                          {{"mapping", version.record.mapping},
                           {"version", absl::StrCat(version.record.number)},
                           {"digest", version.record.digest}});
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
