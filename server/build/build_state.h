// States of a build, and the only transitions between them:
//
//   receiving ──finish──► queued ──start──► computing ──computed──► publishing ──published──► done
//    │      │               │                  │   │                     │
//    │      ├───────────────┴──────────────────┘   └──────────┬──────────┘
//    │      └── cancel ──► cancelled                          └── fail ──► failed
//    └── abandon ──► failed
//
// A broken stream ends its build only while the build is receiving: after `finish` a build outlives
// its client. A publishing build cannot be cancelled, because its version may become visible at any
// moment.
#ifndef PHIMAP_SERVER_BUILD_BUILD_STATE_H_
#define PHIMAP_SERVER_BUILD_BUILD_STATE_H_

#include <optional>

namespace phimap {

enum class BuildState {
  kReceiving,
  kQueued,
  kComputing,
  kPublishing,
  kDone,
  kFailed,
  kCancelled,
};

enum class BuildEvent {
  // The client's `finish`, with the right row count.
  kFinish,
  // A build thread takes the build.
  kStart,
  // The artifact has been computed.
  kComputed,
  // The store has the artifact.
  kPublished,
  // The stream broke or was invalid.
  kAbandon,
  // Computing or publishing failed.
  kFail,
  // CancelBuild was called, the server shuts down, or the claim was lost.
  kCancel,
};

// Returns the state after `event`, or nullopt if `event` is illegal in `state`.
std::optional<BuildState> NextState(BuildState state, BuildEvent event);

// Returns whether the build is done, failed or cancelled, and so will not change any more.
bool IsFinished(BuildState state);

}  // namespace phimap

#endif  // PHIMAP_SERVER_BUILD_BUILD_STATE_H_
