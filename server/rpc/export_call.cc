#include "server/rpc/export_call.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "exchange/artifact_chunk.h"
#include "server/registry/reference.h"
#include "server/registry/version_lookup.h"
#include "server/rpc/version_ref_to_proto.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

constexpr int64_t kExportRetryMs = 1000;

absl::Status TooManyExports() {
  return MakeError(Code::kResourceExhausted, "TOO_MANY_EXPORTS", "",
                   absl::StrCat("too many exports are under way; the limit is ", kMaxExports),
                   {{"limit", absl::StrCat(kMaxExports)}}, kExportRetryMs);
}

absl::Status Silent(absl::Duration limit) {
  return MakeError(Code::kDeadlineExceeded, "IDLE_STREAM", "",
                   absl::StrCat("the client took nothing for ", absl::FormatDuration(limit)),
                   {{"limit", absl::FormatDuration(limit)}});
}

}  // namespace

ExportCall::ExportCall(const Environment& environment, const RpcMethod& method,
                       const grpc::CallbackServerContext& context, const v1::ExportRequest& request)
    : environment_(environment),
      context_(context),
      scope_(context, method, environment.logger),
      request_(request),
      under_way_(environment.running.fetch_add(1)) {
  scope_.MessageReceived();
}

ExportCall::~ExportCall() { environment_.running.fetch_sub(1); }

void ExportCall::Start() {
  self_ = shared_from_this();
  if (!scope_.admission().ok()) return End(scope_.admission());
  if (under_way_ >= kMaxExports) return End(TooManyExports());
  idle_.emplace(
      environment_.idle_timeout, weak_from_this(), [this] { return WritingSince(); },
      [this] { GiveUp(); });
  QueueNext();
}

void ExportCall::QueueNext() {
  const absl::Status queued = environment_.store_pool.Submit([this] { Next(); });
  if (!queued.ok()) End(queued);
}

void ExportCall::Next() {
  absl::Status read;
  try {
    read = Read();
  } catch (const std::bad_alloc&) {
    read = MakeError(Code::kResourceExhausted, "OUT_OF_MEMORY", "", "not enough memory for a chunk",
                     {}, kExportRetryMs);
  }
  if (!read.ok() || chunk_.data().empty()) return End(read);
  {
    MutexLock lock(&mutex_);
    writing_since_ = absl::Now();
  }
  StartWrite(&chunk_);
}

absl::Status ExportCall::Read() {
  if (scope_.cancelled()->load()) return absl::CancelledError("the client gave the call up");
  chunk_.Clear();
  if (reader_ == nullptr) PHIMAP_RETURN_IF_ERROR(Open());
  PHIMAP_ASSIGN_OR_RETURN(std::string piece, reader_->Next(kSentChunkBytes));
  const int64_t offset = offset_bytes_;
  offset_bytes_ += static_cast<int64_t>(piece.size());
  FillChunk(offset, std::move(piece), chunk_);
  return absl::OkStatus();
}

absl::Status ExportCall::Open() {
  PHIMAP_ASSIGN_OR_RETURN(const Reference reference, ParseReference(request_.reference()));
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const VersionRecord record,
                            LookUpVersion(environment_.store, reference));
    absl::StatusOr<std::unique_ptr<ArtifactReader>> reader =
        environment_.store.OpenArtifact(record.digest);
    // Deleted since it was looked up: the name may mean another version now, or none.
    if (absl::IsNotFound(reader.status())) continue;
    PHIMAP_RETURN_IF_ERROR(reader.status());
    reader_ = *std::move(reader);
    RefToProto(record, chunk_.mutable_version());
    chunk_.set_artifact_size_bytes(reader_->size_bytes());
    return absl::OkStatus();
  }
}

void ExportCall::OnWriteDone(bool ok) {
  bool silent = false;
  {
    MutexLock lock(&mutex_);
    writing_since_ = absl::InfiniteFuture();
    silent = silent_;
  }
  if (!ok) {
    return End(silent ? Silent(environment_.idle_timeout)
                      : absl::CancelledError("the client gave the call up"));
  }
  scope_.MessageSent();
  QueueNext();
}

std::optional<absl::Time> ExportCall::WritingSince() {
  MutexLock lock(&mutex_);
  if (ended_) return std::nullopt;
  return writing_since_;
}

void ExportCall::GiveUp() {
  MutexLock lock(&mutex_);
  if (ended_) return;
  silent_ = true;
  context_.TryCancel();
}

void ExportCall::End(const absl::Status& status) {
  {
    MutexLock lock(&mutex_);
    ended_ = true;
  }
  Finish(scope_.Finish(status));  // `this` may be gone now
}

}  // namespace phimap
