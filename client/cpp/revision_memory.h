// Remembers revisions of names, which servers of a shared store report and later calls ask for.
// After a change this client sees it on every server, and never an older state. Includes gRPC: for
// .cc files only.
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

// Thread-safe. Costs nothing before the client's first change.
class RevisionMemory {
 public:
  // Makes the call that `context` belongs to ask for the newest known revision. Returns the epoch
  // of that revision, for Note; "" if no revision is known.
  std::string AddTo(grpc::ClientContext& context) const;
  // To be called after a call that asked for a revision of the epoch `asked`: learns the revision
  // in the trailing metadata. Within an epoch the larger number wins. Another epoch replaces the
  // present one, unless it is `asked`, which was dropped or replaced during the call. A revision
  // that the server reports to be of another history is dropped.
  void Note(const grpc::ClientContext& context, const absl::Status& status,
            absl::string_view asked);

 private:
  void Learn(absl::string_view revision, absl::string_view asked);

  std::atomic<bool> known_{false};
  mutable std::mutex mutex_;
  std::string epoch_;
  int64_t number_ = 0;
};

// Whether the server refused the call because its revision is from before a failover or a restored
// backup. The server did not begin such a call and Note has dropped the revision, so the call can
// be retried.
bool IsOfAnotherHistory(const absl::Status& status);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_REVISION_MEMORY_H_
