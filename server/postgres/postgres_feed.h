// What others changed in a catalog on PostgreSQL, by LISTEN and by asking.
#ifndef PHIMAP_SERVER_POSTGRES_POSTGRES_FEED_H_
#define PHIMAP_SERVER_POSTGRES_POSTGRES_FEED_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/postgres/postgres_connection.h"
#include "server/store/change_feed.h"

namespace phimap {

struct PostgresFeedOptions {
  // How long a connection and an answer are waited for at first. What is too late is asked again
  // over another connection, with twice the time, up to `longest_patience`.
  absl::Duration patience = absl::Milliseconds(400);
  absl::Duration longest_patience = absl::Seconds(5);
};

// One connection of its own: what waits on it holds up nobody else, and the other way round. It is
// opened when it is needed, and again when it is lost. Through a pooler between transactions no
// notices come; asking works.
class PostgresFeed final : public ChangeFeed {
 public:
  // Connects nowhere yet. REQUIRES: the tables are there, and `uri` is one (postgres_uri.h).
  explicit PostgresFeed(std::string uri, const PostgresFeedOptions& options = {});

  // Returns at once when there is no connection.
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

#endif  // PHIMAP_SERVER_POSTGRES_POSTGRES_FEED_H_
