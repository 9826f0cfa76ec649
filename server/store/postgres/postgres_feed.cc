#include "server/store/postgres/postgres_feed.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/status/status_macros.h"
#include "core/thread/steady_time.h"
#include "server/store/catalog_tables.h"
#include "server/store/postgres/postgres_connection.h"

namespace phimap {
namespace {

// Fraction of the timeout that is left for the network after the server has ended a statement.
constexpr double kGrace = 0.25;

PostgresTimeouts TimeoutsFor(absl::Duration patience) {
  PostgresTimeouts timeouts;
  timeouts.connect = patience;
  timeouts.statement = patience * (1 - kGrace);
  timeouts.answer_grace = patience * kGrace;
  timeouts.lock = timeouts.statement;
  return timeouts;
}

}  // namespace

PostgresFeed::PostgresFeed(std::string uri, const PostgresFeedOptions& options)
    : uri_(std::move(uri)), options_(options), patience_(options.patience) {}

absl::Status PostgresFeed::Connect() {
  if (connection_ != nullptr && connection_->usable()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(connection_, PostgresConnection::Open(uri_, TimeoutsFor(patience_)));
  return connection_->Listen("phimap");
}

void PostgresFeed::Await(absl::Duration limit) {
  if (connection_ == nullptr) return;
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(limit);
  if (!connection_->WaitForNotification(deadline).ok()) connection_.reset();
}

absl::StatusOr<NameChanges> PostgresFeed::ChangesSince(const Revision& since) {
  const absl::Time start = SteadyNow();
  absl::StatusOr<NameChanges> changes = [&]() -> absl::StatusOr<NameChanges> {
    PHIMAP_RETURN_IF_ERROR(Connect());
    PHIMAP_RETURN_IF_ERROR(connection_->RunBatch(BeginRead(connection_->timeouts())).status());
    PostgresSession session(connection_.get());
    PHIMAP_ASSIGN_OR_RETURN(NameChanges read, CatalogTables(session).ChangesSince(since));
    PHIMAP_RETURN_IF_ERROR(connection_->RunBatch("COMMIT").status());
    return read;
  }();
  if (!changes.ok()) {
    connection_.reset();
    // The database may be slow rather than unreachable.
    if (SteadyNow() - start >= patience_ * (1 - kGrace)) {
      patience_ = std::min(2 * patience_, options_.longest_patience);
    }
  } else if (patience_ > options_.patience) {
    // Resets the timeout, so that the next connection, too, is given up quickly if it hangs.
    patience_ = options_.patience;
    connection_.reset();
  }
  return changes;
}

}  // namespace phimap
