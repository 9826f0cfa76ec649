// A connection to PostgreSQL and its statements, as values with StatusOr: nothing here knows the
// store's tables.
#ifndef PHIMAP_SERVER_POSTGRES_POSTGRES_CONNECTION_H_
#define PHIMAP_SERVER_POSTGRES_POSTGRES_CONNECTION_H_

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
#include "server/postgres/postgres_error.h"
#include "server/postgres/postgres_uri.h"
#include "server/store/sql_database.h"

struct pg_conn;
struct pg_result;

namespace phimap {

// A value of type bytea.
struct PostgresBytes {
  absl::string_view bytes;
};
using PostgresValue = std::variant<std::monostate, int64_t, absl::string_view, PostgresBytes>;

struct PostgresTimeouts {
  // Timeout for each host that the address names, unless it has connect_timeout.
  absl::Duration connect = absl::Seconds(5);
  // For each statement. The server then ends the statement; a server that does not answer for
  // `answer_grace` longer counts as lost.
  absl::Duration statement = absl::Seconds(10);
  absl::Duration answer_grace = absl::Seconds(1);
  // For each lock that a statement waits for.
  absl::Duration lock = absl::Seconds(5);
  // Timeout for a transaction whose client is idle.
  absl::Duration idle_in_transaction = absl::Seconds(30);
};

// One connection. Not thread-safe. No call waits for longer than its timeout, except for the
// resolver of host names, which has its own (resolv.conf).
//
// A connection that failed, or that did not answer in time, is closed and stays so: the outcome of
// its last statement is unknown. Every later call is the same error.
//
// Errors are those of SqlDatabase, without ABORTED: 40001 and 40P01 are UNAVAILABLE, and
// last_sqlstate() distinguishes them.
class PostgresConnection {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Tries the hosts of `uri` (postgres_uri.h) in their order.
  static absl::StatusOr<std::unique_ptr<PostgresConnection>> Open(const std::string& uri,
                                                                  const PostgresTimeouts& timeouts);
  ~PostgresConnection();
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  // Runs statements without parameters, separated by semicolons, in one round trip. Returns the
  // rows of the last.
  absl::StatusOr<SqlRows> RunBatch(const std::string& statements);
  // Runs one statement as an unnamed one, which a pooler between transactions lets through.
  // Columns that are neither integers, truth values (0 or 1) nor NULL are text.
  absl::StatusOr<SqlRows> Run(absl::string_view statement,
                              absl::Span<const PostgresValue> values = {});
  absl::StatusOr<SqlRows> Run(absl::string_view statement, absl::Span<const SqlValue> values);
  // Runs one statement with bytea among its results, as text of any bytes; only integers, truth
  // values, text and bytea.
  absl::StatusOr<SqlRows> RunBinary(absl::string_view statement,
                                    absl::Span<const PostgresValue> values);

  // A pooler between transactions has no LISTEN.
  absl::Status Listen(absl::string_view channel);
  // Waits for a notification, and takes all that are there. False: none came until `deadline`.
  absl::StatusOr<bool> WaitForNotification(Deadline deadline);

  // Whether the idle server has not closed the connection. Looks without waiting.
  bool IsAlive();
  // False once it was closed.
  bool usable() const { return connection_ != nullptr; }
  // Whether a transaction is open, failed ones included.
  bool in_transaction() const;
  // The last call's: state of its error ("" when it had none, or the connection failed without an
  // answer), command tag ("COMMIT", "ROLLBACK") and warnings.
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
  // Continues to establish a connection until it is ready or `deadline` comes.
  absl::Status Establish(Deadline deadline);
  absl::Status ConnectError(absl::string_view fallback);
  // Waits until the socket is ready for one of poll(2)'s `events`. False: until the deadline it was
  // not.
  bool Await(int16_t events, Deadline deadline) const;
  void BeginCall();
  absl::StatusOr<SqlRows> Send(absl::string_view statement, absl::Span<const PostgresValue> values,
                               bool binary);
  // After something was sent: all answers, the last one's rows.
  absl::StatusOr<SqlRows> Receive();
  absl::Status Flush(Deadline deadline);
  absl::Status AwaitResult(Deadline deadline);
  absl::Status ErrorOf(const pg_result* result);
  // Closes it.
  absl::Status Lost(absl::string_view what);
  static void ReceiveNotice(void* connection, const pg_result* notice);

  const PostgresTimeouts timeouts_;
  std::unique_ptr<pg_conn, Finish> connection_;
  PostgresPlace place_;
  std::string last_sqlstate_;
  std::string last_command_;
  std::vector<std::string> last_warnings_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_POSTGRES_POSTGRES_CONNECTION_H_
