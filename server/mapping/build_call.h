// One Build: spec, examples, finish in; accepted, progress, version out.
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
//   1. The next message is asked for only after the one before was taken by a build thread, which
//      reads it where it is.
//   2. One write at most is under way; of the progress that happens meanwhile only the newest is
//      told.
//   3. A call that opened the build (it did not attach) and ends before `finish` abandons it before
//      the client is told of the end: then the id is free.
class BuildCall final : public TypedStreamCall<v1::BuildRequest>, public BuildObserver {
 public:
  // `builds` outlives the call.
  BuildCall(const CallStart& start, BuildManager& builds);

  // From any thread.
  void OnBuildChanged() override;

 private:
  // The message that may come next.
  enum class Expects { kSpec, kExamples, kNothing };

  void Start() override;
  void OnRequest() override;
  void OnRequestsEnd() override;
  void OnWritten() override;
  void OnEnd(const absl::Status& status) override;

  // Each takes the message in request().
  void TakeSpec();
  void TakeExamples();
  void TakeFinish();
  // From any thread, with Begin's result: the call may have ended.
  void Opened(absl::StatusOr<BuildManager::Attachment> begun);
  void Begun(absl::StatusOr<BuildManager::Attachment> begun);
  // Writes the next event, if there is one and none is on its way.
  void Tell();

  BuildManager& builds_;
  Expects expects_ = Expects::kSpec;
  // Set when the build has begun.
  std::shared_ptr<BuildJob> job_;
  bool attached_ = false;
  bool tell_accepted_ = false;
  bool changed_ = false;
  bool version_told_ = false;
  // A change is on its way to the loop: one task tells of all.
  std::atomic<bool> change_posted_{false};

  // The build that this call opened, and whether it is there: written once, by the thread that
  // opened it, which may find afterwards that the call has ended. It or OnEnd sees the other's
  // write and abandons the build; both may do so.
  std::shared_ptr<BuildJob> opened_;
  std::atomic<bool> has_opened_{false};
  std::atomic<bool> ended_{false};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MAPPING_BUILD_CALL_H_
