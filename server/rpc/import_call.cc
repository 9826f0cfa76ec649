#include "server/rpc/import_call.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "exchange/artifact_chunk.h"
#include "server/registry/reference.h"
#include "server/rpc/request_message.h"
#include "server/rpc/stream_status.h"
#include "server/rpc/version_to_proto.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

constexpr int64_t kImportRetryMs = 1000;

absl::Status TooManyImports() {
  return MakeError(Code::kResourceExhausted, "TOO_MANY_IMPORTS", "",
                   absl::StrCat("too many imports are under way; the limit is ", kMaxImports),
                   {{"limit", absl::StrCat(kMaxImports)}}, kImportRetryMs);
}

}  // namespace

ImportCall::ImportCall(const Environment& environment, const RpcMethod& method,
                       const grpc::CallbackServerContext& context, v1::Version* response)
    : environment_(environment),
      scope_(context, method, environment.logger),
      response_(response),
      under_way_(environment.running.fetch_add(1)) {}

ImportCall::~ImportCall() { environment_.running.fetch_sub(1); }

void ImportCall::Start() {
  self_ = shared_from_this();
  if (!scope_.admission().ok()) return End(scope_.admission());
  if (under_way_ >= kMaxImports) return End(TooManyImports());
  idle_.emplace(
      environment_.idle_timeout, weak_from_this(), [this] { return WaitingSince(); },
      [this] { End(SilentStream(environment_.idle_timeout)); });
  WantRead();
}

void ImportCall::OnDone() { self_.reset(); }

void ImportCall::OnCancel() {
  scope_.Cancel();
  End(ClientGone());
}

void ImportCall::OnReadDone(bool ok) {
  {
    MutexLock lock(&mutex_);
    waiting_since_ = absl::InfiniteFuture();
    if (end_.has_value()) return;
  }
  if (!ok) {
    return End(import_.has_value()
                   ? Unexpected("digest", "it at the end of the stream; nothing was stored")
                   : Unexpected("mapping", "it in the first message, the stream ended"));
  }
  if (absl::Status s = ParseRequest(bytes_, request_); !s.ok()) return End(s);
  scope_.MessageReceived();
  const absl::Status queued =
      environment_.pool.Submit([self = shared_from_this()] { self->Take(); });
  if (!queued.ok()) End(queued);
}

void ImportCall::Take() {
  absl::Status taken;
  try {
    taken = scope_.cancelled()->load() ? ClientGone() : TakeMessage();
  } catch (const std::bad_alloc&) {
    taken = MakeError(Code::kResourceExhausted, "OUT_OF_MEMORY", "",
                      "not enough memory for this artifact", {}, kImportRetryMs);
  }
  if (!taken.ok() || done_) return End(taken);
  WantRead();
}

absl::Status ImportCall::TakeMessage() {
  switch (request_.message_case()) {
    case v1::ImportRequest::kMapping:
      return TakeMapping();
    case v1::ImportRequest::kChunk:
      return TakeChunk();
    case v1::ImportRequest::kDigest:
      return TakeDigest();
    case v1::ImportRequest::MESSAGE_NOT_SET:
      break;
  }
  return Unexpected("message", "mapping, chunk or digest, got none");
}

absl::Status ImportCall::TakeMapping() {
  if (import_.has_value()) return Unexpected("mapping", "it in the first message only");
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(request_.mapping(), "mapping"));
  import_.emplace(request_.mapping(), environment_.memory);
  return absl::OkStatus();
}

absl::Status ImportCall::TakeChunk() {
  if (!import_.has_value()) return Unexpected("mapping", "it in the first message");
  PHIMAP_RETURN_IF_ERROR(CheckChunk(request_.chunk(), import_->size_bytes()));
  return import_->Append(request_.chunk().data());
}

absl::Status ImportCall::TakeDigest() {
  if (!import_.has_value()) return Unexpected("mapping", "it in the first message");
  PHIMAP_ASSIGN_OR_RETURN(
      const CertifiedVersion version,
      import_->Finish(request_.digest(), environment_.store, environment_.registry));
  environment_.logger.Log(LogLevel::kInfo, "version_imported",
                          {{"mapping", version.record.mapping},
                           {"version", absl::StrCat(version.record.number)},
                           {"digest", version.record.digest}});
  VersionToProto(version, &version_);
  done_ = true;
  return absl::OkStatus();
}

std::optional<absl::Time> ImportCall::WaitingSince() {
  MutexLock lock(&mutex_);
  if (end_.has_value()) return std::nullopt;
  return waiting_since_;
}

void ImportCall::End(const absl::Status& status) {
  {
    MutexLock lock(&mutex_);
    if (!end_.has_value()) {
      end_ = status;
      // The response is gRPC's, and gone soon after the end.
      if (status.ok()) response_->Swap(&version_);
    }
  }
  Advance();
}

void ImportCall::WantRead() {
  {
    MutexLock lock(&mutex_);
    want_read_ = true;
  }
  Advance();
}

ImportCall::Step ImportCall::NextStep() {
  Step step;
  if (finished_) return step;
  if (end_.has_value()) {
    if (starting_reads_ > 0) return step;
    finished_ = true;
    step.finish = true;
    step.status = *end_;
    return step;
  }
  if (want_read_) {
    want_read_ = false;
    waiting_since_ = absl::Now();
    ++starting_reads_;
    step.read = true;
  }
  return step;
}

void ImportCall::Advance() {
  // Another thread may end the call as soon as the lock is released.
  const auto self = shared_from_this();
  while (true) {
    Step step;
    {
      MutexLock lock(&mutex_);
      step = NextStep();
    }
    if (step.read) StartRead(&bytes_);
    if (step.finish) {
      if (step.status.ok()) scope_.MessageSent();
      Finish(scope_.Finish(step.status));
    }
    if (!step.read) return;
    MutexLock lock(&mutex_);
    --starting_reads_;  // and look again: an end may have waited for this
  }
}

}  // namespace phimap
