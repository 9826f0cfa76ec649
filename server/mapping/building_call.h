// A call that builds a version from a stream: receives a spec, blocks of examples and finish; sends
// accepted, progress and the version. Shared by Build and Train, whose messages differ.
#ifndef PHIMAP_SERVER_MAPPING_BUILDING_CALL_H_
#define PHIMAP_SERVER_MAPPING_BUILDING_CALL_H_

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "server/build/build_manager.h"
#include "server/mapping/mapping_to_proto.h"
#include "server/mapping/request_fields.h"
#include "server/rpc/call.h"

namespace phimap {

// Invariants:
//   1. The next message is read only after a build thread has consumed the previous one, which it
//      reads in place.
//   2. At most one write is in progress. Of the progress made during a write, only the newest is
//      sent, after that write.
//   3. A call that opened its build (rather than attached to it) and ends before `finish` abandons
//      the build before the client learns of the end. So the id is free by then.
template <typename Request, typename Response>
class BuildingCall : public TypedStreamCall<Request>, public BuildObserver {
 public:
  // May be called on any thread.
  void OnBuildChanged() final {
    if (change_posted_.exchange(true)) return;
    this->Post([this] {
      // Cleared before the build is read, so that a later change posts another task.
      change_posted_.store(false);
      changed_ = true;
      Tell();
    });
  }

 protected:
  // `builds` must outlive the call.
  BuildingCall(const CallStart& start, BuildManager& builds)
      : TypedStreamCall<Request>(start), builds_(builds) {}

  // Returns the function that receives the result of BuildManager::Begin, on any thread. The call
  // may have ended by then.
  std::function<void(absl::StatusOr<BuildManager::Attachment>)> Opens() {
    return [this, self = this->shared_from_this()](absl::StatusOr<BuildManager::Attachment> begun) {
      if (begun.ok() && !begun->attached) {
        opened_ = begun->job;
        has_opened_.store(true);
        if (ended_.load()) return builds_.Abandon(begun->job, ClientGone());
      }
      if (this->OnLoop()) return Begun(std::move(begun));
      this->Post([this, begun = std::move(begun)]() mutable { Begun(std::move(begun)); });
    };
  }
  BuildManager& builds() { return builds_; }

 private:
  // The message that the client may send next.
  enum class Expects { kSpec, kExamples, kNothing };

  // Reads the spec in request(), and begins the build with Opens(). Returns an error to end the
  // call.
  virtual absl::Status TakeSpec() = 0;
  // Reads the examples in request(), which stay unchanged until the next message. They are added to
  // the build, of which `job` is the job.
  virtual absl::StatusOr<TrainingBlock> ReadExamples(const BuildJob& job) = 0;

  void Start() final {
    this->SetIdleLimit(builds_.idle_timeout());
    this->ReadNext();
  }

  void OnRequest() final {
    if (expects_ == Expects::kNothing) return this->ReadNext();  // attached: rows are ignored
    switch (this->request().message_case()) {
      case Request::kSpec:
        if (expects_ != Expects::kSpec) {
          return this->Finish(Unexpected("spec", "a spec in the first message only"));
        }
        if (const absl::Status taken = TakeSpec(); !taken.ok()) this->Finish(taken);
        return;
      case Request::kExamples:
        return TakeExamples();
      case Request::kFinish:
        return TakeFinish();
      case Request::MESSAGE_NOT_SET:
        return this->Finish(Unexpected("message", "spec, examples or finish, got none"));
    }
  }

  void OnRequestsEnd() final {
    if (expects_ == Expects::kNothing) return;
    if (expects_ == Expects::kSpec) {
      return this->Finish(Unexpected("spec", "a spec, but the stream ended"));
    }
    this->Finish(MakeError(absl::StatusCode::kInvalidArgument, reason::kFinishMissing, "finish",
                           "expected `finish` before the end of the stream; nothing was built"));
  }

  void Begun(absl::StatusOr<BuildManager::Attachment> begun) {
    if (!begun.ok()) return this->Finish(begun.status());
    job_ = begun->job;
    attached_ = begun->attached;
    expects_ = attached_ ? Expects::kNothing : Expects::kExamples;
    job_->Subscribe(std::static_pointer_cast<BuildingCall>(this->shared_from_this()));
    tell_accepted_ = true;
    // Events before the subscription were missed: the build may have finished or been cancelled.
    changed_ = attached_ || IsFinished(job_->Snapshot().state);
    Tell();
    this->ReadNext();
  }

  void TakeExamples() {
    if (expects_ != Expects::kExamples) {
      return this->Finish(Unexpected("spec", "a spec in the first message"));
    }
    absl::StatusOr<TrainingBlock> block = ReadExamples(*job_);
    if (!block.ok()) return this->Finish(block.status());
    builds_.Add(
        job_, *std::move(block),
        [this, self = this->shared_from_this()](const absl::Status& taken) {
          this->Post([this, taken] { taken.ok() ? this->ReadNext() : this->Finish(taken); });
        });
  }

  void TakeFinish() {
    if (expects_ != Expects::kExamples) {
      return this->Finish(Unexpected("spec", "a spec in the first message"));
    }
    expects_ = Expects::kNothing;
    const absl::Status finished = builds_.Finish(job_, this->request().finish().row_count());
    // Reads nothing more: from now on the client waits for the build, however long it takes.
    if (!finished.ok()) this->Finish(finished);
  }

  void OnWritten() final {
    if (version_told_) return this->Finish(absl::OkStatus());
    Tell();
  }

  // Writes the next event, if there is one and no write is in progress.
  void Tell() {
    if (this->writing() || job_ == nullptr || version_told_) return;
    // An attached client may be silent, but must read what is written.
    if (attached_) this->SetIdleLimit(absl::InfiniteDuration());
    Response response;
    if (std::exchange(tell_accepted_, false)) {
      response.mutable_accepted()->set_build_id(job_->id().build_id);
      response.mutable_accepted()->set_attached(attached_);
    } else {
      if (!std::exchange(changed_, false)) return;
      const BuildSnapshot snapshot = job_->Snapshot();
      if (!snapshot.error.ok()) return this->Finish(snapshot.error);
      if (snapshot.state == BuildState::kDone) {
        VersionToProto(*snapshot.version, response.mutable_version());
        version_told_ = true;
      } else {
        BuildToProto(snapshot, response.mutable_progress());
      }
    }
    this->SetIdleLimit(builds_.idle_timeout());
    this->Write(response);
  }

  void OnEnd(const absl::Status& status) final {
    ended_.store(true);
    if (has_opened_.load()) builds_.Abandon(opened_, status);
  }

  BuildManager& builds_;
  Expects expects_ = Expects::kSpec;
  // Set when the build has begun.
  std::shared_ptr<BuildJob> job_;
  bool attached_ = false;
  bool tell_accepted_ = false;
  bool changed_ = false;
  bool version_told_ = false;
  // Set while a task that reports changes is posted to the loop. One task reports all changes so
  // far.
  std::atomic<bool> change_posted_{false};

  // The build that this call opened; valid if has_opened_. The thread that opened the build writes
  // opened_ and has_opened_ once, and then checks ended_. OnEnd sets ended_, and then checks
  // has_opened_. So if the call ends early, the opening thread or OnEnd (or both) will abandon the
  // build.
  std::shared_ptr<BuildJob> opened_;
  std::atomic<bool> has_opened_{false};
  std::atomic<bool> ended_{false};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_BUILDING_CALL_H_
