// Remembers the newest revision that a client has seen. Servers that share a store report their
// revision, and each call asks for at least the remembered revision. So after a change, no server
// shows this client an older state. Includes gRPC, so include this header only in .cc files.
#ifndef PHIMAP_CLIENT_CPP_REVISION_MEMORY_H_
#define PHIMAP_CLIENT_CPP_REVISION_MEMORY_H_

#include <grpcpp/client_context.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap::client {

// Thread-safe. Adds no cost to calls before the first change.
class RevisionMemory {
 public:
  // Makes the call of `context`, which has not started, ask for the newest known revision. Returns
  // the epoch of that revision, to be passed to Note; "" if no revision is known.
  std::string AddTo(grpc::ClientContext& context) const;
  // Learns the revision in the trailing metadata of a finished call. `asked` is the epoch that
  // AddTo returned for this call. A revision of the known epoch replaces the known revision if it
  // is larger. A revision of another epoch replaces it too, unless that epoch is `asked`: then it
  // was known when the call began, and has been forgotten or replaced since.
  //
  // If the server refused the call because its revision is of another history, Note forgets that
  // revision.
  void Note(const grpc::ClientContext& context, const absl::Status& status,
            absl::string_view asked);

 private:
  void Learn(absl::string_view revision, absl::string_view asked);

  std::atomic<bool> known_{false};
  mutable std::mutex mutex_;
  std::string epoch_;
  int64_t number_ = 0;
};

// Returns true if the server refused the call because its revision is from before a failover or a
// restored backup. The server did not begin the call, and Note has forgotten the revision, so the
// call can be retried.
bool IsOfAnotherHistory(const absl::Status& status);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_REVISION_MEMORY_H_
