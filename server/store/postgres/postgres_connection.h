// A connection to PostgreSQL and its statements. Results and errors are returned as StatusOr. This
// class does not know the store's tables.
#ifndef PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_CONNECTION_H_
#define PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_CONNECTION_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/store/postgres/postgres_uri.h"
#include "server/store/sql_database.h"

struct pg_conn;
struct pg_result;

namespace phimap {

// The database that an error is about. Never contains a password.
struct PostgresPlace {
  std::string host;
  std::string port;
  std::string database;
  std::string user;

  // Returns text such as: database "phimap" on db.example:5432 (user "phimap").
  std::string Text() const;
};

// Returns an error that states the cause and a remedy. `sqlstate` is the five characters with which
// the server answered, or "" if the connection failed without an answer. `message` is the text of
// the server or libpq.
absl::Status PostgresError(absl::string_view sqlstate, absl::string_view message,
                           const PostgresPlace& place);

// Whether the connection is unusable after an error with `sqlstate`, because the server is ending
// or has become a standby. A new connection may then reach another server.
bool EndsConnection(absl::string_view sqlstate);

// Whether the same transaction may succeed if it is run again at once.
bool IsSerializationFailure(absl::string_view sqlstate);

// Parts of libpq's text about a failed connection. With PQERRORS_VERBOSE, the text contains "FATAL:
// 28P01: text" and a line with a place in PostgreSQL's source code.
struct ConnectFailure {
  std::string sqlstate;  // Empty when the server did not answer.
  std::string message;   // Without the place, in one line.
};
ConnectFailure ParseConnectFailure(absl::string_view libpq_message);

// A value of type bytea.
struct PostgresBytes {
  absl::string_view bytes;
};
using PostgresValue = std::variant<std::monostate, int64_t, absl::string_view, PostgresBytes>;

struct PostgresTimeouts {
  // Timeout for each host that the address names, unless the address has connect_timeout.
  absl::Duration connect = absl::Seconds(5);
  // Limit of that, whatever the address says.
  absl::Duration connect_at_most = absl::InfiniteDuration();
  // Timeout of each statement, after which the database server ends it. If the server does not
  // answer for another `answer_grace`, the connection counts as lost.
  absl::Duration statement = absl::Seconds(10);
  absl::Duration answer_grace = absl::Seconds(1);
  // Timeout of each wait for a lock.
  absl::Duration lock = absl::Seconds(5);
  // Timeout for a transaction whose client is idle.
  absl::Duration idle_in_transaction = absl::Seconds(30);
};

// One connection. Not thread-safe. No call waits for longer than its timeout, except for the
// resolver of host names, which has its own timeout (resolv.conf).
//
// A connection that failed, or did not answer in time, is closed for good, because the outcome of
// its last statement is unknown. Every later call returns the same error.
//
// Errors: those of SqlDatabase, without ABORTED. The SQLSTATEs 40001 and 40P01 are UNAVAILABLE
// here; last_sqlstate() distinguishes them.
class PostgresConnection {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Tries the hosts of `uri` (postgres_uri.h) in order.
  static absl::StatusOr<std::unique_ptr<PostgresConnection>> Open(const std::string& uri,
                                                                  const PostgresTimeouts& timeouts);
  ~PostgresConnection();
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  // Runs statements without parameters, separated by semicolons, in one round trip. Returns the
  // rows of the last statement.
  absl::StatusOr<SqlRows> RunBatch(const std::string& statements);
  // Runs one unnamed statement, so that it works through a connection pooler in transaction mode.
  // Columns other than integers, booleans (0 or 1) and NULL are returned as text.
  absl::StatusOr<SqlRows> Run(absl::string_view statement,
                              absl::Span<const PostgresValue> values = {});
  absl::StatusOr<SqlRows> Run(absl::string_view statement, absl::Span<const SqlValue> values);
  // Runs one statement whose results include bytea, which is returned as text with arbitrary bytes.
  // The results may contain only integers, booleans, text and bytea.
  absl::StatusOr<SqlRows> RunBinary(absl::string_view statement,
                                    absl::Span<const PostgresValue> values);

  // Subscribes to notifications. Does not work through a pooler in transaction mode, which has no
  // LISTEN.
  absl::Status Listen(absl::string_view channel);
  // Waits for a notification, and consumes all that have arrived. Returns false if none arrived
  // until `deadline`.
  absl::StatusOr<bool> WaitForNotification(Deadline deadline);

  // From now on, no call waits beyond `end`, even if its timeout is longer.
  void set_end(Deadline end) { end_ = end; }

  // Whether the server has kept the idle connection open. Checks without waiting.
  bool IsAlive();
  // False once the connection has been closed.
  bool usable() const { return connection_ != nullptr; }
  // Whether a transaction is open, including a failed one.
  bool in_transaction() const;
  // Results of the last call: the SQLSTATE of its error ("" if it had none, or if the connection
  // failed without an answer), its command tag ("COMMIT", "ROLLBACK") and its warnings.
  const std::string& last_sqlstate() const { return last_sqlstate_; }
  const std::string& last_command() const { return last_command_; }
  const std::vector<std::string>& last_warnings() const { return last_warnings_; }

  const PostgresPlace& place() const { return place_; }
  // Value of PQserverVersion: 150018 is 15.18.
  int server_version() const;
  const PostgresTimeouts& timeouts() const { return timeouts_; }

 private:
  struct Finish {
    void operator()(pg_conn* connection) const;
  };
  explicit PostgresConnection(const PostgresTimeouts& timeouts) : timeouts_(timeouts) {}

  static absl::StatusOr<std::unique_ptr<PostgresConnection>> OpenHost(
      const PostgresParameters& parameters, const PostgresTimeouts& timeouts);
  // Continues to establish the connection until it is ready or `deadline` passes.
  absl::Status Establish(Deadline deadline);
  absl::Status ConnectError(absl::string_view fallback);
  // Waits until the socket is ready for one of poll(2)'s `events`. Returns false if that did not
  // happen before the deadline.
  bool Await(int16_t events, Deadline deadline) const;
  void BeginCall();
  absl::StatusOr<SqlRows> Send(absl::string_view statement, absl::Span<const PostgresValue> values,
                               bool binary);
  // Receives all results of what was sent. Returns the rows of the last one.
  absl::StatusOr<SqlRows> Receive();
  absl::Status Flush(Deadline deadline);
  absl::Status AwaitResult(Deadline deadline);
  absl::Status ErrorOf(const pg_result* result);
  // Closes the connection, and returns the error that it was lost, with `what` as the reason.
  absl::Status Lost(absl::string_view what);
  static void ReceiveNotice(void* connection, const pg_result* notice);

  const PostgresTimeouts timeouts_;
  Deadline end_ = Deadline::max();
  std::unique_ptr<pg_conn, Finish> connection_;
  PostgresPlace place_;
  std::string last_sqlstate_;
  std::string last_command_;
  std::vector<std::string> last_warnings_;
};

// An open transaction. After a statement has failed, PostgreSQL runs no further statement of the
// transaction; each further call returns the same error.
class PostgresSession final : public SqlSession {
 public:
  explicit PostgresSession(PostgresConnection* connection) : connection_(connection) {}

  absl::StatusOr<SqlRows> Run(absl::string_view statement,
                              absl::Span<const SqlValue> values = {}) override;
  // Like PostgresConnection::RunBinary.
  absl::StatusOr<SqlRows> RunBinary(absl::string_view statement,
                                    absl::Span<const PostgresValue> values);
  // The first error of a statement; OK if there was none.
  const absl::Status& failure() const { return failure_; }

 private:
  absl::StatusOr<SqlRows> Noted(absl::StatusOr<SqlRows> rows);

  PostgresConnection* const connection_;
  absl::Status failure_;
};

// Return the statements that begin a transaction, to be run in one round trip. Settings last for
// the transaction, so that a pooler may give the connection to another client afterwards.
std::string BeginRead(const PostgresTimeouts& timeouts);
std::string BeginWrite(const PostgresTimeouts& timeouts);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_CONNECTION_H_
