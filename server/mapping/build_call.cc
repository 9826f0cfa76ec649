#include "server/mapping/build_call.h"

#include <utility>

#include "core/status/error.h"
#include "server/calls/call_errors.h"
#include "server/mapping/build_spec_from_proto.h"
#include "server/mapping/mapping_to_proto.h"
#include "server/mapping/request_fields.h"
#include "server/transform/row_messages.h"

namespace phimap {

BuildCall::BuildCall(const CallStart& start, BuildManager& builds)
    : TypedStreamCall(start), builds_(builds) {}

void BuildCall::Start() {
  SetIdleLimit(builds_.idle_timeout());
  ReadNext();
}

void BuildCall::OnBuildChanged() {
  if (change_posted_.exchange(true)) return;
  Post([this] {
    // Cleared before the build is read, so that a later change posts another task.
    change_posted_.store(false);
    changed_ = true;
    Tell();
  });
}

void BuildCall::OnRequest() {
  if (expects_ == Expects::kNothing) return ReadNext();  // attached: rows are ignored
  switch (request().message_case()) {
    case v1::BuildRequest::kSpec:
      return TakeSpec();
    case v1::BuildRequest::kExamples:
      return TakeExamples();
    case v1::BuildRequest::kFinish:
      return TakeFinish();
    case v1::BuildRequest::MESSAGE_NOT_SET:
      return Finish(Unexpected("message", "spec, examples or finish, got none"));
  }
}

void BuildCall::OnRequestsEnd() {
  if (expects_ == Expects::kNothing) return;
  if (expects_ == Expects::kSpec) return Finish(Unexpected("spec", "a spec, but the stream ended"));
  Finish(MakeError(absl::StatusCode::kInvalidArgument, "FINISH_MISSING", "finish",
                   "expected `finish` before the end of the stream; nothing was built"));
}

void BuildCall::TakeSpec() {
  if (expects_ != Expects::kSpec)
    return Finish(Unexpected("spec", "a spec in the first message only"));
  const v1::BuildSpec& fields = request().spec();
  absl::StatusOr<BuildId> id = BuildIdFromProto(fields.mapping(), fields.build_id(), "spec.");
  if (!id.ok()) return Finish(id.status());
  absl::StatusOr<BuildSpec> spec = BuildSpecFromProto(fields);
  if (!spec.ok()) return Finish(spec.status());
  absl::StatusOr<absl::Duration> ttl = absl::InfiniteDuration();
  if (fields.has_ttl()) ttl = TtlFromProto(fields.ttl(), "spec.ttl");
  if (!ttl.ok()) return Finish(ttl.status());
  builds_.Begin(
      *std::move(id), *std::move(spec),
      [this, self = shared_from_this()](absl::StatusOr<BuildManager::Attachment> begun) {
        Opened(std::move(begun));
      },
      *ttl, caller());
}

void BuildCall::Opened(absl::StatusOr<BuildManager::Attachment> begun) {
  if (begun.ok() && !begun->attached) {
    opened_ = begun->job;
    has_opened_.store(true);
    if (ended_.load()) return builds_.Abandon(begun->job, ClientGone());
  }
  if (OnLoop()) return Begun(std::move(begun));
  Post([this, begun = std::move(begun)]() mutable { Begun(std::move(begun)); });
}

void BuildCall::Begun(absl::StatusOr<BuildManager::Attachment> begun) {
  if (!begun.ok()) return Finish(begun.status());
  job_ = begun->job;
  attached_ = begun->attached;
  expects_ = attached_ ? Expects::kNothing : Expects::kExamples;
  job_->Subscribe(std::static_pointer_cast<BuildCall>(shared_from_this()));
  tell_accepted_ = true;
  // Events before the subscription were missed: the build may have finished or been cancelled.
  changed_ = attached_ || IsFinished(job_->Snapshot().state);
  Tell();
  ReadNext();
}

void BuildCall::TakeExamples() {
  if (expects_ != Expects::kExamples)
    return Finish(Unexpected("spec", "a spec in the first message"));
  absl::StatusOr<ExamplesView> rows = ExamplesFromProto(request().examples());
  if (!rows.ok()) return Finish(rows.status());
  builds_.Add(job_, *rows, [this, self = shared_from_this()](const absl::Status& taken) {
    Post([this, taken] { taken.ok() ? ReadNext() : Finish(taken); });
  });
}

void BuildCall::TakeFinish() {
  if (expects_ != Expects::kExamples)
    return Finish(Unexpected("spec", "a spec in the first message"));
  expects_ = Expects::kNothing;
  const absl::Status finished = builds_.Finish(job_, request().finish().row_count());
  // Reads nothing more: from now on the client waits for the build, however long it takes.
  if (!finished.ok()) Finish(finished);
}

void BuildCall::OnWritten() {
  if (version_told_) return Finish(absl::OkStatus());
  Tell();
}

void BuildCall::Tell() {
  if (writing() || job_ == nullptr || version_told_) return;
  // An attached client may be silent, but must read what is written.
  if (attached_) SetIdleLimit(absl::InfiniteDuration());
  v1::BuildResponse response;
  if (std::exchange(tell_accepted_, false)) {
    response.mutable_accepted()->set_build_id(job_->id().build_id);
    response.mutable_accepted()->set_attached(attached_);
  } else {
    if (!std::exchange(changed_, false)) return;
    const BuildSnapshot snapshot = job_->Snapshot();
    if (!snapshot.error.ok()) return Finish(snapshot.error);
    if (snapshot.state == BuildState::kDone) {
      VersionToProto(*snapshot.version, response.mutable_version());
      version_told_ = true;
    } else {
      BuildToProto(snapshot, response.mutable_progress());
    }
  }
  SetIdleLimit(builds_.idle_timeout());
  Write(response);
}

void BuildCall::OnEnd(const absl::Status& status) {
  ended_.store(true);
  if (has_opened_.load()) builds_.Abandon(opened_, status);
}

}  // namespace phimap
