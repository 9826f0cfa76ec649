// An RPC method as the server knows it: made once, when the server is put together.
#ifndef PHIMAP_SERVER_CALLS_METHOD_H_
#define PHIMAP_SERVER_CALLS_METHOD_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/auth/access_control.h"
#include "server/auth/role.h"
#include "server/calls/caller_shares.h"
#include "server/calls/revisions.h"
#include "server/memory/request_memory.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/schedule/task_pool.h"
#include "server/transport/stream.h"

namespace phimap {

class Call;
struct CallStart;

struct Method {
  // Makes the call; a call that was not admitted is not made.
  using Open = std::function<std::shared_ptr<Call>(const CallStart&)>;

  MethodMetrics metrics;
  // The lowest role that may call it.
  Role role;
  Open open;
  // Largest request; of those that are open to all it is small.
  int64_t max_request_bytes = std::numeric_limits<int64_t>::max();
  // Where the revision is known that its answers tell; null: they tell none.
  const Revisions* told_revisions = nullptr;
};

// What all calls work with; outlives them.
struct CallEnvironment {
  const AccessControl& access;
  // Of requests and answers.
  RequestMemory& memory;
  // Calls of each caller.
  CallerShares& callers;
  // Parses large messages.
  TaskPool& parsing;
  // Largest message either way.
  int64_t max_message_bytes;
  const Logger& logger;
  // A message of which too little comes for so long gives way to those who wait for memory; so does
  // an answer of which nothing is taken.
  absl::Duration half_message_time = absl::Seconds(5);
  int64_t slowest_bytes_per_second = 64 << 10;
};

// What a call begins with.
struct CallStart {
  Stream& stream;
  const Method& method;
  const CallEnvironment& environment;
  absl::Time deadline;
  // Moved into the call.
  mutable CallerShares::Share share = {};
  // What must be known before the call begins; "": nothing, or it is.
  absl::string_view min_revision = {};
  // Null if the caller names no revision.
  Revisions* revisions = nullptr;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_METHOD_H_
