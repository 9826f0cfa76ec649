#include "server/rpc/build_call.h"

#include <utility>

#include "core/status/error.h"
#include "server/rpc/build_spec_from_proto.h"
#include "server/rpc/examples_from_proto.h"
#include "server/rpc/request_message.h"
#include "server/rpc/stream_status.h"
#include "server/rpc/version_to_proto.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

}  // namespace

BuildCall::BuildCall(BuildManager& builds, const RpcMethod& method, const Logger& logger,
                     const grpc::CallbackServerContext& context)
    : builds_(builds), scope_(context, method, logger) {}

void BuildCall::Start() {
  self_ = shared_from_this();
  if (!scope_.admission().ok()) return Fail(scope_.admission());
  WantRead();
}

void BuildCall::OnDone() { self_.reset(); }

void BuildCall::OnCancel() {
  scope_.Cancel();
  Fail(ClientGone());
}

void BuildCall::OnBuildChanged() {
  {
    MutexLock lock(&mutex_);
    changed_ = true;
  }
  Advance();
}

void BuildCall::OnWriteDone(bool ok) {
  {
    MutexLock lock(&mutex_);
    writing_ = false;
  }
  if (!ok) return Fail(ClientGone());
  scope_.MessageSent();
  Advance();
}

void BuildCall::OnReadDone(bool ok) {
  if (!ok) return StreamEnded();
  if (absl::Status s = ParseRequest(bytes_, request_); !s.ok()) return Fail(s);
  scope_.MessageReceived();
  if (expects_ == Expects::kNothing) return WantRead();  // attached: rows are ignored
  switch (request_.message_case()) {
    case v1::BuildRequest::kSpec:
      return TakeSpec();
    case v1::BuildRequest::kExamples:
      return TakeExamples();
    case v1::BuildRequest::kFinish:
      return TakeFinish();
    case v1::BuildRequest::MESSAGE_NOT_SET:
      return Fail(Unexpected("message", "spec, examples or finish, got none"));
  }
}

void BuildCall::StreamEnded() {
  if (expects_ == Expects::kNothing) return;
  if (expects_ == Expects::kSpec) return Fail(Unexpected("spec", "a spec, the stream ended"));
  Fail(MakeError(Code::kInvalidArgument, "NO_FINISH", "finish",
                 "the stream ended without it; nothing was built"));
}

void BuildCall::TakeSpec() {
  if (expects_ != Expects::kSpec) return Fail(Unexpected("spec", "it in the first message only"));
  const v1::BuildSpec& fields = request_.spec();
  absl::StatusOr<BuildId> id = BuildIdFromProto(fields.mapping(), fields.build_id(), "spec.");
  if (!id.ok()) return Fail(id.status());
  absl::StatusOr<BuildSpec> spec = BuildSpecFromProto(fields);
  if (!spec.ok()) return Fail(spec.status());
  builds_.Begin(*std::move(id), *std::move(spec),
                [self = shared_from_this()](absl::StatusOr<BuildManager::Attachment> begun) {
                  self->Begun(std::move(begun));
                });
}

void BuildCall::Begun(absl::StatusOr<BuildManager::Attachment> begun) {
  if (!begun.ok()) return Fail(begun.status());
  begun->job->Subscribe(weak_from_this());
  expects_ = begun->attached ? Expects::kNothing : Expects::kExamples;
  bool gone = false;
  {
    MutexLock lock(&mutex_);
    job_ = begun->job;
    attached_ = begun->attached;
    tell_accepted_ = true;
    // What happened before the subscription: the build may be finished, or have been cancelled.
    changed_ = attached_ || IsFinished(job_->Snapshot().state);
    gone = error_.has_value();
  }
  if (gone) return Fail(ClientGone());
  WantRead();
}

void BuildCall::TakeExamples() {
  if (expects_ != Expects::kExamples) return Fail(Unexpected("spec", "it in the first message"));
  absl::StatusOr<ExamplesView> rows = ExamplesFromProto(request_.examples());
  if (!rows.ok()) return Fail(rows.status());
  std::shared_ptr<BuildJob> job;
  {
    MutexLock lock(&mutex_);
    job = job_;
  }
  builds_.Add(std::move(job), *rows, [self = shared_from_this()](const absl::Status& taken) {
    if (taken.ok()) return self->WantRead();
    self->Fail(taken);
  });
}

void BuildCall::TakeFinish() {
  if (expects_ != Expects::kExamples) return Fail(Unexpected("spec", "it in the first message"));
  expects_ = Expects::kNothing;
  std::shared_ptr<BuildJob> job;
  {
    MutexLock lock(&mutex_);
    job = job_;
  }
  const absl::Status finished = builds_.Finish(job, request_.finish().row_count());
  if (!finished.ok()) return Fail(finished);
  Advance();
}

void BuildCall::Fail(const absl::Status& error) {
  std::shared_ptr<BuildJob> opened;
  {
    MutexLock lock(&mutex_);
    if (!attached_) opened = job_;
    // Begun looks for it if it comes later, and abandons the job.
    if (opened == nullptr && !error_.has_value()) error_ = error;
  }
  if (opened != nullptr) {
    // Before the error can be told: when the client hears of it, the id is free.
    builds_.Abandon(opened, error);
    MutexLock lock(&mutex_);
    if (!error_.has_value()) error_ = error;
  }
  Advance();
}

void BuildCall::WantRead() {
  {
    MutexLock lock(&mutex_);
    want_read_ = true;
  }
  Advance();
}

bool BuildCall::NextEvent() {
  if (tell_accepted_) {
    tell_accepted_ = false;
    response_.Clear();
    response_.mutable_accepted()->set_build_id(job_->id().build_id);
    response_.mutable_accepted()->set_attached(attached_);
    return true;
  }
  if (!changed_ || version_told_) return false;
  changed_ = false;
  const BuildSnapshot snapshot = job_->Snapshot();
  if (!snapshot.error.ok()) {
    error_ = snapshot.error;
    return false;
  }
  response_.Clear();
  if (snapshot.state == BuildState::kDone) {
    VersionToProto(*snapshot.version, response_.mutable_version());
    version_told_ = true;
  } else {
    BuildToProto(snapshot, response_.mutable_progress());
  }
  return true;
}

BuildCall::Step BuildCall::NextStep() {
  Step step;
  if (finished_) return step;
  if (!writing_ && !error_.has_value() && NextEvent()) {
    writing_ = true;
    step.write = true;
  }
  if (!writing_ && starting_reads_ == 0 && (error_.has_value() || version_told_)) {
    finished_ = true;
    step.finish = true;
    step.status = error_.value_or(absl::OkStatus());
    return step;
  }
  if (want_read_ && !error_.has_value() && !version_told_) {
    want_read_ = false;
    ++starting_reads_;
    step.read = true;
  }
  return step;
}

void BuildCall::Advance() {
  // Another thread may end the call as soon as the lock is released.
  const auto self = shared_from_this();
  while (true) {
    Step step;
    {
      MutexLock lock(&mutex_);
      step = NextStep();
    }
    if (step.read) StartRead(&bytes_);
    if (step.write) StartWrite(&response_);
    if (step.finish) Finish(scope_.Finish(step.status));
    if (!step.read) return;
    MutexLock lock(&mutex_);
    --starting_reads_;  // and look again: an end may have waited for this
  }
}

}  // namespace phimap
