#include "server/build/build_state.h"

namespace phimap {
namespace {

std::optional<BuildState> Only(bool legal, BuildState next) {
  return legal ? std::optional<BuildState>(next) : std::nullopt;
}

}  // namespace

bool IsFinished(BuildState state) {
  return state == BuildState::kDone || state == BuildState::kFailed ||
         state == BuildState::kCancelled;
}

std::optional<BuildState> NextState(BuildState state, BuildEvent event) {
  switch (event) {
    case BuildEvent::kFinish:
      return Only(state == BuildState::kReceiving, BuildState::kQueued);
    case BuildEvent::kStart:
      return Only(state == BuildState::kQueued, BuildState::kComputing);
    case BuildEvent::kComputed:
      return Only(state == BuildState::kComputing, BuildState::kPublishing);
    case BuildEvent::kPublished:
      return Only(state == BuildState::kPublishing, BuildState::kDone);
    case BuildEvent::kAbandon:
      return Only(state == BuildState::kReceiving, BuildState::kFailed);
    case BuildEvent::kFail:
      return Only(state == BuildState::kComputing || state == BuildState::kPublishing,
                  BuildState::kFailed);
    case BuildEvent::kCancel:
      return Only(!IsFinished(state) && state != BuildState::kPublishing, BuildState::kCancelled);
  }
  return std::nullopt;
}

}  // namespace phimap
