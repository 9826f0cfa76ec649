// One Build call: receives spec, examples and finish; sends accepted, progress and version.
#ifndef PHIMAP_SERVER_MAPPING_BUILD_CALL_H_
#define PHIMAP_SERVER_MAPPING_BUILD_CALL_H_

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "phimap/v1/mapping_service.pb.h"
#include "server/build/build_manager.h"
#include "server/calls/stream_call.h"

namespace phimap {

// Invariants:
//   1. The next message is read only after a build thread has consumed the previous one, which it
//      reads in place.
//   2. At most one write is in progress. Of the progress made during a write, only the newest is
//      sent, after that write.
//   3. A call that opened its build (rather than attached to it) and ends before `finish` abandons
//      the build before the client learns of the end. So the id is free by then.
class BuildCall final : public TypedStreamCall<v1::BuildRequest>, public BuildObserver {
 public:
  // `builds` must outlive the call.
  BuildCall(const CallStart& start, BuildManager& builds);

  // May be called on any thread.
  void OnBuildChanged() override;

 private:
  // The message that the client may send next.
  enum class Expects { kSpec, kExamples, kNothing };

  void Start() override;
  void OnRequest() override;
  void OnRequestsEnd() override;
  void OnWritten() override;
  void OnEnd(const absl::Status& status) override;

  // Each of these functions handles the message in request().
  void TakeSpec();
  void TakeExamples();
  void TakeFinish();
  // Receives the result of BuildManager::Begin, on any thread. The call may have ended by then.
  void Opened(absl::StatusOr<BuildManager::Attachment> begun);
  void Begun(absl::StatusOr<BuildManager::Attachment> begun);
  // Writes the next event, if there is one and no write is in progress.
  void Tell();

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

#endif  // PHIMAP_SERVER_MAPPING_BUILD_CALL_H_
