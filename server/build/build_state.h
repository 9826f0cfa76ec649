// States of a build, and the only transitions between them:
//
//   receiving ──finish──► queued ──start──► computing ──computed──► publishing ──published──► done
//    │      │               │                  │   │                     │
//    │      ├───────────────┴──────────────────┘   └──────────┬──────────┘
//    │      └── cancel ──► cancelled                          └── fail ──► failed
//    └── abandon ──► failed
//
// A stream that breaks ends its build only while it is receiving: after `finish` a build outlives
// its client. A build that is publishing cannot be cancelled: the version may be visible at any
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
  // The artifact is there.
  kComputed,
  // The store has it.
  kPublished,
  // The stream broke or is at fault.
  kAbandon,
  // The work went wrong.
  kFail,
  // CancelBuild, or the server shuts down.
  kCancel,
};

// The state after `event`, or nullopt when it may not happen in `state`.
std::optional<BuildState> NextState(BuildState state, BuildEvent event);

// Whether the state is final: done, failed or cancelled.
bool IsFinished(BuildState state);

}  // namespace phimap

#endif  // PHIMAP_SERVER_BUILD_BUILD_STATE_H_
