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
  // Largest request; small for methods that are open to all.
  int64_t max_request_bytes = std::numeric_limits<int64_t>::max();
  // Source of the revision that its answers report; null: they report none.
  const Revisions* told_revisions = nullptr;
};

// Services that all calls use; outlives them.
struct CallEnvironment {
  const AccessControl& access;
  // Budget of requests and answers.
  RequestMemory& memory;
  // Calls of each caller.
  CallerShares& callers;
  // Parses large messages.
  TaskPool& parsing;
  // Largest message either way.
  int64_t max_message_bytes;
  const Logger& logger;
  // A message that has been arriving below `slowest_bytes_per_second` for this long is cancelled if
  // other requests wait for memory. The same limit applies to an answer that the client reads too
  // slowly.
  absl::Duration half_message_time = absl::Seconds(5);
  int64_t slowest_bytes_per_second = 64 << 10;
};

// Start of a call.
struct CallStart {
  Stream& stream;
  const Method& method;
  const CallEnvironment& environment;
  absl::Time deadline;
  // Moved into the call.
  mutable CallerShares::Share share = {};
  // Revision that must be known before the call begins; "" if none is required, or it is known.
  absl::string_view min_revision = {};
  // Null if the caller names no revision.
  Revisions* revisions = nullptr;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_METHOD_H_
