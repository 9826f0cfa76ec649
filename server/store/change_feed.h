// Informs a server of other servers' changes in the catalog that they share.
#ifndef PHIMAP_SERVER_STORE_CHANGE_FEED_H_
#define PHIMAP_SERVER_STORE_CHANGE_FEED_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/records.h"

namespace phimap {

// Used by one thread at a time.
class ChangeFeed {
 public:
  virtual ~ChangeFeed() = default;

  // Returns when there may be a change, or after `limit`. Notifications can get lost, so a caller
  // that needs certainty must also call ChangesSince after `limit`.
  virtual void Await(absl::Duration limit) = 0;
  // Like Store::ChangesSince, but returns UNAVAILABLE after a few tenths of a second instead of
  // many seconds, because a half-open connection must not hide other servers' changes.
  virtual absl::StatusOr<NameChanges> ChangesSince(const Revision& since) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_CHANGE_FEED_H_
