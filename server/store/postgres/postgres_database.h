// The catalog's database on PostgreSQL.
#ifndef PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_DATABASE_H_
#define PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_DATABASE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/thread/mutex.h"
#include "server/store/postgres/postgres_connection.h"
#include "server/store/sql_database.h"
#include "server/store/store_facts.h"

namespace phimap {

// A limited number of connections to one PostgreSQL database: PostgresPool.
struct PostgresPoolOptions {
  PostgresTimeouts timeouts;
  int connections = 4;
  // Maximum time for which a caller waits for another caller's connection.
  absl::Duration wait = absl::Seconds(10);
  // While the database is unreachable, the pool tries to connect after `first_backoff`, and then
  // after twice the previous delay, up to `longest_backoff`. Each delay is shortened at random by
  // up to half, so that servers do not all come back at once.
  absl::Duration first_backoff = absl::Milliseconds(100);
  absl::Duration longest_backoff = absl::Seconds(5);
  // Called for each new connection before it is used, until it succeeds once. It creates or checks
  // the tables.
  std::function<absl::Status(PostgresConnection&)> prepare = [](PostgresConnection&) {
    return absl::OkStatus();
  };
};

// Thread-safe. While the database is down, one caller at a time checks whether it is back. The
// others get the last error at once, with the time until the next check as retry delay.
class PostgresPool {
 public:
  using Deadline = PostgresConnection::Deadline;

  // A connection of the pool. At the end of the lease the pool keeps the connection if it is idle
  // and usable, and no connection has been lost meanwhile.
  class Lease {
   public:
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)),
          connection_(std::move(other.connection_)),
          generation_(other.generation_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    PostgresConnection& operator*() const { return *connection_; }
    PostgresConnection* operator->() const { return connection_.get(); }

   private:
    friend class PostgresPool;
    Lease(PostgresPool* pool, std::unique_ptr<PostgresConnection> connection, int64_t generation)
        : pool_(pool), connection_(std::move(connection)), generation_(generation) {}
    PostgresPool* pool_;
    std::unique_ptr<PostgresConnection> connection_;
    int64_t generation_;
  };

  PostgresPool(std::string uri, const PostgresPoolOptions& options);
  ~PostgresPool();

  // Waits for a connection until `end`, and no longer than the options say. Calls on the connection
  // do not wait beyond `end` either.
  absl::StatusOr<Lease> Acquire(Deadline end = Deadline::max());
  // Like Acquire, but while the database is unreachable, waits until it is back or `deadline`
  // passes.
  absl::StatusOr<Lease> AcquireUntil(Deadline deadline);
  // To be called when a connection was lost or leads to a standby. Closes idle connections at once,
  // and busy ones when they are returned, because they were probably lost too, perhaps unnoticed.
  void Renew();

  const PostgresPoolOptions& options() const { return options_; }
  // Server of the connection that was opened last; "" if there was none.
  std::string place() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether synchronous_standby_names was set when a connection was last opened.
  bool has_synchronous_standby() const { return has_synchronous_standby_; }

 private:
  // Takes an idle connection or, as a lease without a connection, the right to open a new one.
  absl::StatusOr<Lease> Take(Deadline end);
  absl::Status AwayError() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Connect(Lease& lease, Deadline end);
  void Return(std::unique_ptr<PostgresConnection> connection, int64_t generation);
  absl::StatusOr<std::unique_ptr<PostgresConnection>> OpenChecked(Deadline end);
  void ConnectFailed(const absl::Status& error);

  const std::string uri_;
  const PostgresPoolOptions options_;
  // Number of hosts that the address names.
  const int64_t hosts_;
  std::atomic<bool> has_synchronous_standby_{false};
  std::atomic<bool> prepared_{false};

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::unique_ptr<PostgresConnection>> idle_ ABSL_GUARDED_BY(mutex_);
  // Number of leases, including those that are still connecting.
  int in_use_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  // Number of consecutive failed attempts to connect. While it is not 0, the database is
  // unreachable.
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;
  bool probing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status last_error_ ABSL_GUARDED_BY(mutex_);
  std::string place_ ABSL_GUARDED_BY(mutex_);
  Deadline next_attempt_ ABSL_GUARDED_BY(mutex_);
};

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
  // Asks the database for the facts about it. Blocking; keeps the last ones if the database cannot
  // be read.
  void LookAtFacts() ABSL_LOCKS_EXCLUDED(mutex_);
  // What LookAtFacts found last. A user without the role pg_read_all_stats sees of standbys only
  // that they are connected, so a backup in progress counts as one, and any as the synchronous one.
  StoreFacts facts() const ABSL_LOCKS_EXCLUDED(mutex_);
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
  mutable Mutex mutex_;
  StoreFacts facts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_DATABASE_H_
