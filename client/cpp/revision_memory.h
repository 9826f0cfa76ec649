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
  // What was known when a call began, to be passed to Note.
  struct Asked {
    // "" if the call asks for no revision.
    std::string revision;
    // Number of histories that had been left behind.
    int64_t history = 0;
  };

  // Makes the call of `context`, which has not started, ask for the newest known revision.
  Asked AddTo(grpc::ClientContext& context) const;
  // Returns what is known, for a call that asks for no revision.
  Asked AskingForNone() const;
  // Learns the revision in the trailing metadata of a finished call: it replaces the known one if
  // its number is larger, unless it may be of a history that was left behind since the call began.
  //
  // If the server refused the call because its revision is of another history, Note leaves that
  // history behind, and remembers the revision of the new one that the error tells.
  void Note(const grpc::ClientContext& context, const absl::Status& status, const Asked& asked);

 private:
  void Learn(absl::string_view revision, int64_t history);

  std::atomic<bool> known_{false};
  mutable std::mutex mutex_;
  // As the server told it, ID:NUMBER; "" if none is known.
  std::string revision_;
  int64_t number_ = 0;
  // Read without the mutex, written with it.
  std::atomic<int64_t> history_{0};
};

// Returns true if the server refused the call because its revision is from before a failover or a
// restored backup. The server did not begin the call, and Note has forgotten the revision, so the
// call can be retried.
bool IsOfAnotherHistory(const absl::Status& status);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_REVISION_MEMORY_H_
