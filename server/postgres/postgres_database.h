// The catalog's database on PostgreSQL.
#ifndef PHIMAP_SERVER_POSTGRES_POSTGRES_DATABASE_H_
#define PHIMAP_SERVER_POSTGRES_POSTGRES_DATABASE_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/postgres/postgres_pool.h"
#include "server/postgres/postgres_session.h"
#include "server/store/sql_database.h"

namespace phimap {

struct PostgresDatabaseOptions {
  PostgresPoolOptions pool;
  // Maximum time for which Write tries to learn the outcome of a commit whose answer was lost.
  absl::Duration settle = absl::Seconds(10);
  // Time after which Read gives up, for servers whose callers should rather get what is known than
  // wait for a database that hangs.
  absl::Duration read_limit = absl::InfiniteDuration();
  // Time after which Write gives up. If its commit is then without an answer, it may still take
  // `settle`.
  absl::Duration change_limit = absl::InfiniteDuration();
};

// Has the requirements and guarantees of SqlDatabase, and these:
//
//   1. Writers of all processes run one after another, because each first locks the single row of
//      `store` and keeps the lock until its commit is done. So the order of commits is the order of
//      the revisions that transactions take from that row.
//   2. A lost connection is not an error as long as another one can be opened: Read begins again,
//      once, and so does Write unless COMMIT was sent. Bodies must tolerate being run again.
//   3. A commit whose answer was lost is settled by a second commit of the same row. The second
//      commit waits for the end of the backend that had the row locked. With synchronous
//      replication, it returns when the standby has everything that came before. Only then is the
//      result of `is_stored` reliable.
//   4. A commit that returns with a warning did not wait until the standby had it, because its wait
//      was cancelled. It is on one machine only and stays COMMIT_IN_DOUBT: a failover may lose it.
//   5. Each Write notifies the channel `phimap`.
//
// All statements work through PgBouncer in transaction mode: settings last for one transaction, and
// nothing is prepared.
class PostgresDatabase final : public SqlDatabase {
 public:
  using PostgresBody = absl::FunctionRef<absl::Status(PostgresSession&)>;

  // Connects, and creates or migrates the tables (postgres_schema.h). FAILED_PRECONDITION for a
  // server before PostgreSQL 13, INVALID_ARGUMENT for a bad `uri` (postgres_uri.h).
  static absl::StatusOr<std::unique_ptr<PostgresDatabase>> Open(
      const std::string& uri, const PostgresDatabaseOptions& options = {});

  // Connects when it is first used, and then does what Open does.
  static std::unique_ptr<PostgresDatabase> OpenLater(const std::string& uri,
                                                     const PostgresDatabaseOptions& options = {});

  absl::Status Read(Body body) override;
  absl::Status Write(Body body, IsStored is_stored, absl::string_view what) override;
  absl::Status WriteAside(Body body) override;
  bool in_doubt() const override { return in_doubt_.load(std::memory_order_acquire); }

  // Like Read, but the results may include bytea, and read_limit does not hold.
  absl::Status ReadBytes(PostgresBody body);
  // Runs `body` in one transaction that does not wait for other writers, changes nothing that has a
  // revision, and may happen twice: it is run again, once, even if the answer of its commit was
  // lost. With kWithNext, the call returns before the transaction is on disk; it is durable as soon
  // as a later transaction is.
  enum class Durability { kNow, kWithNext };
  absl::Status WriteTwice(Durability durability, PostgresBody body);

  // Whether there is a synchronous standby. Without one, commits are on one machine's disk only,
  // and are lost with it.
  bool has_synchronous_standby() const { return pool_.has_synchronous_standby(); }
  // Looks whether the synchronous standby that the database names is connected. Blocking; keeps the
  // last finding if the database cannot be read.
  void LookForStandby();
  // Whether LookForStandby last found that a standby is named, but none is connected: commits then
  // wait until it is back. A user without the role pg_read_all_stats sees connections only, so any
  // standby or backup in progress counts.
  bool standby_missing() const { return standby_missing_; }
  // Location of the database, for people. Contains no password.
  std::string place() const { return pool_.place(); }
  const PostgresDatabaseOptions& options() const { return options_; }

 private:
  PostgresDatabase(const std::string& uri, const PostgresDatabaseOptions& options);

  // Result of one attempt to run a transaction.
  struct Outcome {
    absl::Status status;
    // Nothing of the transaction was stored, and a retry may succeed.
    bool again = false;
    // The commit may or may not have happened.
    bool in_doubt = false;
  };
  // Gives up at `end`.
  Outcome Attempt(const std::string& begin, const std::string& commit, PostgresBody body,
                  PostgresPool::Deadline end = PostgresPool::Deadline::max());
  absl::Status ReadUntil(PostgresPool::Deadline end, PostgresBody body);
  Outcome Commit(PostgresConnection& connection, const std::string& commit,
                 const absl::Status& failure);
  Outcome Failed(PostgresConnection& connection, const absl::Status& status);
  absl::Status Settle(const absl::Status& cause, IsStored is_stored, absl::string_view what);

  // Like Write, but does not set `in_doubt_` when a commit is in doubt.
  absl::Status WriteOrDoubt(Body body, IsStored is_stored, absl::string_view what);

  const PostgresDatabaseOptions options_;
  PostgresPool pool_;
  // Whether a commit was left in doubt and no later commit of this process has succeeded.
  std::atomic<bool> in_doubt_{false};
  std::atomic<bool> standby_missing_{false};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_POSTGRES_POSTGRES_DATABASE_H_
