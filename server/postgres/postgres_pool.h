// A bounded pool of connections to one PostgreSQL.
#ifndef PHIMAP_SERVER_POSTGRES_POSTGRES_POOL_H_
#define PHIMAP_SERVER_POSTGRES_POSTGRES_POOL_H_

#include <atomic>
#include <chrono>
#include <cstdint>
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
  // Time for which a caller waits for another one's connection.
  absl::Duration wait = absl::Seconds(10);
  // While the database is away a connection is tried after `first_backoff`, then after twice as
  // long each time, up to `longest_backoff`; each a random half shorter, so that servers do not
  // come back at once.
  absl::Duration first_backoff = absl::Milliseconds(100);
  absl::Duration longest_backoff = absl::Seconds(5);
};

// Thread-safe. While the database is down, one caller at a time checks whether it is back. The
// others get the last error at once, with the time until the next check as retry delay.
class PostgresPool {
 public:
  using Deadline = PostgresConnection::Deadline;

  // A connection of the pool, which gets it back at the end of the lease: to keep it if it is idle,
  // usable and none was lost since.
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

  absl::StatusOr<Lease> Acquire();
  // Like Acquire; while the database is away it waits until it is back, or `deadline`.
  absl::StatusOr<Lease> AcquireUntil(Deadline deadline);
  // Call when a connection was lost or leads to a standby. Closes idle connections, and busy ones
  // when they are returned: others were probably lost as well, perhaps unnoticed.
  void Renew();

  const PostgresPoolOptions& options() const { return options_; }
  // Server of the last connection that was opened; "" before the first.
  std::string place() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether synchronous_standby_names was not empty when a connection was opened last.
  bool has_synchronous_standby() const { return has_synchronous_standby_; }

 private:
  // Takes an idle connection, or the right to open one: a lease without a connection.
  absl::StatusOr<Lease> Take();
  absl::Status AwayError() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Connect(Lease& lease);
  void Return(std::unique_ptr<PostgresConnection> connection, int64_t generation);
  absl::StatusOr<std::unique_ptr<PostgresConnection>> OpenChecked();
  void ConnectFailed(const absl::Status& error);

  const std::string uri_;
  const PostgresPoolOptions options_;
  std::atomic<bool> has_synchronous_standby_{false};

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::unique_ptr<PostgresConnection>> idle_ ABSL_GUARDED_BY(mutex_);
  // Leases, and leases that connect.
  int in_use_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  // While the database is away, which is when attempts in sequence failed.
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;
  bool probing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status last_error_ ABSL_GUARDED_BY(mutex_);
  std::string place_ ABSL_GUARDED_BY(mutex_);
  Deadline next_attempt_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_POSTGRES_POSTGRES_POOL_H_
