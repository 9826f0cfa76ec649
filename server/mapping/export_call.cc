#include "server/mapping/export_call.h"

#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "proto/artifact/artifact_chunk.h"
#include "server/calls/call_errors.h"
#include "server/registry/reference.h"
#include "server/transform/version_ref_to_proto.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

constexpr int64_t kExportRetryMs = 1000;

absl::Status TooManyExports(absl::string_view limits) {
  return MakeError(Code::kResourceExhausted, "EXPORT_LIMIT_REACHED", "",
                   absl::StrCat("too many exports are under way; the limit is ", limits),
                   {{"limit", absl::StrCat(kMaxExports)}}, kExportRetryMs);
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
void ExportCall::OnRequest() { QueueNext(); }

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
    return MakeError(Code::kResourceExhausted, "MACHINE_MEMORY_FULL", "",
                     "not enough memory for a chunk", {}, kExportRetryMs);
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
    return absl::OkStatus();
  }
}

void ExportCall::OnWritten() { QueueNext(); }

void ExportCall::OnEnd(const absl::Status&) { place_ = SharedPlaces::Place(); }

}  // namespace phimap
