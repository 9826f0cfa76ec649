// A real PostgreSQL for tests, in a temporary folder and on a port of its own.
#ifndef PHIMAP_TESTS_SERVER_SUPPORT_POSTGRES_SERVER_H_
#define PHIMAP_TESTS_SERVER_SUPPORT_POSTGRES_SERVER_H_

#include <sys/types.h>

#include <atomic>
#include <string>
#include <vector>

#include "server/store/sql_database.h"
#include "tests/server/support/temporary_folder.h"

namespace phimap::testing {

// Thread-safe but for Start and Stop. Ends with the object, and with the test's process.
//
// Anybody on this machine may connect as anybody without a password, but for the user `locked`,
// whose password is kLockedPassword.
class PostgresServer {
 public:
  static constexpr char kLockedPassword[] = "not-for-any-log";

  // One server for the tests of a process that do not stop it or change its settings.
  static PostgresServer& Shared();

  PostgresServer();
  // A standby of `primary`, which from now on commits what this one has too (synchronous
  // replication).
  explicit PostgresServer(PostgresServer& primary);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // On the same port as before.
  void Start();
  // At once, cutting all connections.
  void Stop();

  // Makes a standby the primary. Nobody stands by it then. REQUIRES: the primary is stopped.
  void Promote();

  // A new database, empty. Returns its name.
  std::string CreateDatabase();
  std::string Uri(const std::string& database, const std::string& user = "postgres") const;
  int port() const { return port_; }

  // Runs SQL on a connection of its own. It must succeed.
  SqlRows Run(const std::string& sql, const std::string& database = "postgres");
  // Returns when `condition`, SQL for a truth value, is true.
  void Await(const std::string& condition, const std::string& database = "postgres");
  // Ends all connections to `database` and returns when they are gone; how many there were.
  int CutConnections(const std::string& database);
  // ALTER SYSTEM and reload; an empty value resets it. Returns when it is in force.
  void Set(const std::string& setting, const std::string& value);

 private:
  bool Accepts() const;

  TemporaryFolder folder_;
  int port_ = 0;
  pid_t pid_ = 0;
  std::atomic<int> databases_{0};
};

// PgBouncer in transaction mode before a server, with one connection to it for all: what a
// transaction leaves behind on its connection, the next one of anybody finds.
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

// Stops a process of the server (SIGSTOP) for as long as it lives.
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
