// A limited number of connections to one PostgreSQL database.
#ifndef PHIMAP_SERVER_POSTGRES_POSTGRES_POOL_H_
#define PHIMAP_SERVER_POSTGRES_POSTGRES_POOL_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/postgres/postgres_connection.h"
#include "server/sync/mutex.h"

namespace phimap {

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

}  // namespace phimap

#endif  // PHIMAP_SERVER_POSTGRES_POSTGRES_POOL_H_
