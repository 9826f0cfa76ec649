// Reports other servers' changes in a catalog on PostgreSQL, found by LISTEN and by polling.
#ifndef PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_FEED_H_
#define PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_FEED_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/postgres/postgres_connection.h"
#include "server/store/store.h"

namespace phimap {

struct PostgresFeedOptions {
  // Initial timeout for connecting and for an answer. After a timeout, the query is repeated over
  // another connection with twice the timeout, up to `longest_patience`.
  absl::Duration patience = absl::Milliseconds(400);
  absl::Duration longest_patience = absl::Seconds(5);
};

// The feed has its own connection, so that its waits delay no other user. The connection is opened
// when it is needed, and reopened when it is lost. Behind a pooler in transaction mode, no
// notifications arrive, and changes are found by polling.
class PostgresFeed final : public ChangeFeed {
 public:
  // Does not connect yet. REQUIRES: the tables exist, and `uri` is valid (postgres_uri.h).
  explicit PostgresFeed(std::string uri, const PostgresFeedOptions& options = {});

  // Returns at once if there is no connection.
  void Await(absl::Duration limit) override;
  absl::StatusOr<NameChanges> ChangesSince(const Revision& since) override;

 private:
  absl::Status Connect();

  const std::string uri_;
  const PostgresFeedOptions options_;
  absl::Duration patience_;
  std::unique_ptr<PostgresConnection> connection_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_FEED_H_
