// Informs a server of others' changes in the catalog that they share.
#ifndef PHIMAP_SERVER_STORE_CHANGE_FEED_H_
#define PHIMAP_SERVER_STORE_CHANGE_FEED_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/records.h"

namespace phimap {

// One thread at a time.
class ChangeFeed {
 public:
  virtual ~ChangeFeed() = default;

  // Returns when a change is possible, or after `limit`. Notices can get lost: a caller that needs
  // certainty asks after `limit` too.
  virtual void Await(absl::Duration limit) = 0;
  // Like Store::ChangesSince, but UNAVAILABLE after a few tenths of a second and not after many: a
  // connection that is half open must not hide others' changes.
  virtual absl::StatusOr<NameChanges> ChangesSince(const Revision& since) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_CHANGE_FEED_H_
