// How a server learns what others changed in the catalog that it shares with them.
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

  // Returns when somebody may have changed something, or after `limit`. Notices get lost: who
  // wants to know for certain asks after `limit` too.
  virtual void Await(absl::Duration limit) = 0;
  // As Store::ChangesSince, but UNAVAILABLE after a few tenths of a second and not after many: a
  // connection that is half open must not hide what others change.
  virtual absl::StatusOr<NameChanges> ChangesSince(const Revision& since) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_CHANGE_FEED_H_
