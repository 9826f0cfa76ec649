// A real PostgreSQL server for tests, in a temporary folder and on its own port.
#ifndef PHIMAP_TESTS_SERVER_SUPPORT_POSTGRES_SERVER_H_
#define PHIMAP_TESTS_SERVER_SUPPORT_POSTGRES_SERVER_H_

#include <sys/types.h>

#include <atomic>
#include <string>
#include <vector>

#include "server/store/sql_database.h"
#include "tests/server/support/temporary_folder.h"

namespace phimap::testing {

// Thread-safe, except for Start and Stop. The server ends when the object is destroyed or the
// test's process ends.
//
// Anybody on this machine may connect as any user without a password, except as the user `locked`,
// whose password is kLockedPassword.
class PostgresServer {
 public:
  static constexpr char kLockedPassword[] = "not-for-any-log";

  // A server that all tests of a process share. Such tests must not stop it or change its settings.
  static PostgresServer& Shared();

  PostgresServer();
  // Starts a standby of `primary` with synchronous replication. From now on, a commit on `primary`
  // succeeds only once this standby has it, too.
  explicit PostgresServer(PostgresServer& primary);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // Starts the server again, on the same port as before.
  void Start();
  // Stops the server at once, cutting all connections.
  void Stop();

  // Stops all processes of the server for as long as the object lives, without closing a
  // connection.
  class Paused {
   public:
    explicit Paused(const PostgresServer& server);
    ~Paused();
    Paused(const Paused&) = delete;
    Paused& operator=(const Paused&) = delete;

   private:
    std::vector<pid_t> pids_;
  };

  // Makes this standby the primary. It then has no standby itself. REQUIRES: the old primary is
  // stopped.
  void Promote();

  // Creates an empty database, and returns its name.
  std::string CreateDatabase();
  std::string Uri(const std::string& database, const std::string& user = "postgres") const;
  int port() const { return port_; }

  // Runs SQL on a new connection. The SQL must succeed.
  SqlRows Run(const std::string& sql, const std::string& database = "postgres");
  // Returns when the SQL expression `condition` is true.
  void Await(const std::string& condition, const std::string& database = "postgres");
  // Ends all connections to `database`. Returns their number once they are gone.
  int CutConnections(const std::string& database);
  // Changes a setting with ALTER SYSTEM and a reload. An empty value resets the setting. Returns
  // when the change is in force.
  void Set(const std::string& setting, const std::string& value);

 private:
  bool Accepts() const;

  TemporaryFolder folder_;
  int port_ = 0;
  pid_t pid_ = 0;
  std::atomic<int> databases_{0};
};

// PgBouncer in transaction mode in front of a server. All clients share one connection to that
// server. If a transaction leaves anything behind on that connection, the next transaction of any
// client will find it.
class PgBouncer {
 public:
  explicit PgBouncer(const PostgresServer& server);
  ~PgBouncer();
  PgBouncer(const PgBouncer&) = delete;
  PgBouncer& operator=(const PgBouncer&) = delete;

  std::string Uri(const std::string& database) const;

 private:
  TemporaryFolder folder_;
  const int port_;
  pid_t pid_ = 0;
};

// Pauses a process with SIGSTOP for as long as the object lives.
class PausedProcess {
 public:
  explicit PausedProcess(pid_t pid);
  ~PausedProcess();
  PausedProcess(const PausedProcess&) = delete;
  PausedProcess& operator=(const PausedProcess&) = delete;

 private:
  const pid_t pid_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_SUPPORT_POSTGRES_SERVER_H_
