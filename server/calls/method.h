// An RPC method of the server. Created once, when the server is assembled.
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
#include "server/calls/revisions.h"
#include "server/memory/caller_shares.h"
#include "server/memory/request_memory.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/schedule/task_pool.h"
#include "server/transport/stream.h"

namespace phimap {

class Call;
struct CallStart;

struct Method {
  // Creates the call. Not called for a call that was not admitted.
  using Open = std::function<std::shared_ptr<Call>(const CallStart&)>;

  MethodMetrics metrics;
  // Lowest role that may call the method.
  Role role;
  Open open;
  // Maximum size of a request; small for methods that are open to all.
  int64_t max_request_bytes = std::numeric_limits<int64_t>::max();
  // Source of the revision that answers of the method report; null if they report none.
  const Revisions* told_revisions = nullptr;
};

// Objects and limits that all calls use. They must outlive the calls.
struct CallEnvironment {
  const AccessControl& access;
  // Memory budget of requests and answers.
  RequestMemory& memory;
  // Counts and limits the concurrent calls of each caller.
  CallerShares& callers;
  // Threads that parse large messages.
  TaskPool& parsing;
  // Maximum size of a request or response message.
  int64_t max_message_bytes;
  const Logger& logger;
  // A call is cancelled if a message has been arriving more slowly than `slowest_bytes_per_second`,
  // or so slowly that it would take six times this long, while other requests wait for memory. If
  // the caller holds more than half of the memory, the message must arrive in the time itself, and
  // is looked at five times as often. The same holds for a large answer that is read slowly: what
  // is unread counts as the message.
  absl::Duration half_message_time = absl::Seconds(5);
  int64_t slowest_bytes_per_second = 64 << 10;
};

// The data from which a call is created.
struct CallStart {
  Stream& stream;
  const Method& method;
  const CallEnvironment& environment;
  absl::Time deadline;
  // Moved into the call, although the CallStart is const.
  mutable CallerShares::Share share = {};
  // Revision that must be known before the call begins; "" if none is required, or it is known.
  absl::string_view min_revision = {};
  // Null if the caller has sent no revision.
  Revisions* revisions = nullptr;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_METHOD_H_
