#include "server/postgres/postgres_connection.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/postgres/libpq.h"
#include "server/postgres/pass_file.h"
#include "server/postgres/postgres_values.h"

namespace phimap {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kNotInTime[] = "did not answer in time";

struct Clear {
  void operator()(PGresult* result) const { libpq().PQclear(result); }
};
using Result = std::unique_ptr<PGresult, Clear>;

Clock::time_point After(absl::Duration duration) {
  return Clock::now() + absl::ToChronoNanoseconds(duration);
}

std::string Field(const PGresult* result, int field) {
  const char* text = libpq().PQresultErrorField(result, field);
  return text == nullptr ? "" : text;
}

std::string OrEmpty(const char* text) { return text == nullptr ? "" : text; }

std::string ValueOf(const PostgresParameters& parameters, absl::string_view keyword) {
  for (const auto& [name, value] : parameters) {
    if (name == keyword) return value;
  }
  return "";
}

absl::Duration ConnectTimeout(const PostgresParameters& parameters, absl::Duration otherwise) {
  int64_t seconds = 0;
  const bool given = absl::SimpleAtoi(ValueOf(parameters, "connect_timeout"), &seconds);
  return given && seconds > 0 ? absl::Seconds(seconds) : otherwise;
}

// Returns how long one of the hosts may take.
absl::Duration ConnectTime(const PostgresParameters& parameters, const PostgresTimeouts& timeouts) {
  return std::min(ConnectTimeout(parameters, timeouts.connect), timeouts.connect_at_most);
}

pg_conn* Start(const PostgresParameters& parameters) {
  std::vector<const char*> keywords, values;
  for (const auto& [keyword, value] : parameters) {
    keywords.push_back(keyword.c_str());
    values.push_back(value.c_str());
  }
  keywords.push_back(nullptr);
  values.push_back(nullptr);
  return libpq().PQconnectStartParams(keywords.data(), values.data(), /*expand_dbname=*/0);
}

PostgresPlace PlaceOf(const pg_conn* connection) {
  return {.host = OrEmpty(libpq().PQhost(connection)),
          .port = OrEmpty(libpq().PQport(connection)),
          .database = OrEmpty(libpq().PQdb(connection)),
          .user = OrEmpty(libpq().PQuser(connection))};
}

}  // namespace

void PostgresConnection::Finish::operator()(pg_conn* connection) const {
  libpq().PQfinish(connection);
}

PostgresConnection::~PostgresConnection() = default;

absl::StatusOr<std::unique_ptr<PostgresConnection>> PostgresConnection::Open(
    const std::string& uri, const PostgresTimeouts& timeouts) {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<PostgresParameters> hosts, ParsePostgresUri(uri));
  absl::Status failed;
  for (const PostgresParameters& host : hosts) {
    auto opened = OpenHost(host, timeouts);
    if (opened.ok()) return opened;
    // A permanent error of one host does not hide the temporary error of another host, which may
    // come back.
    if (failed.ok() || absl::IsUnavailable(opened.status())) failed = opened.status();
  }
  return failed;
}

absl::StatusOr<std::unique_ptr<PostgresConnection>> PostgresConnection::OpenHost(
    const PostgresParameters& parameters, const PostgresTimeouts& timeouts) {
  PHIMAP_RETURN_IF_ERROR(LoadLibpq());
  std::unique_ptr<PostgresConnection> opened(new PostgresConnection(timeouts));
  opened->connection_.reset(Start(parameters));
  PHIMAP_CHECK(opened->connection_ != nullptr);  // Null only if libpq has no memory for it.
  pg_conn* const connection = opened->connection_.get();
  opened->place_ = PlaceOf(connection);
  // Verbose errors are the only way to learn the SQLSTATE of a refused connection.
  libpq().PQsetErrorVerbosity(connection, PQERRORS_VERBOSE);
  libpq().PQsetNoticeReceiver(connection, &PostgresConnection::ReceiveNotice, opened.get());
  PHIMAP_RETURN_IF_ERROR(opened->Establish(After(ConnectTime(parameters, timeouts))));
  opened->place_ = PlaceOf(connection);
  libpq().PQsetErrorVerbosity(connection, PQERRORS_DEFAULT);
  if (libpq().PQsetnonblocking(connection, 1) != 0)
    return opened->Lost(libpq().PQerrorMessage(connection));
  return opened;
}

absl::Status PostgresConnection::Establish(Deadline deadline) {
  pg_conn* const connection = connection_.get();
  if (libpq().PQstatus(connection) == CONNECTION_BAD)
    return ConnectError(libpq().PQerrorMessage(connection));
  for (PostgresPollingStatusType next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;
       next = libpq().PQconnectPoll(connection)) {
    if (next == PGRES_POLLING_FAILED) return ConnectError(libpq().PQerrorMessage(connection));
    const int16_t events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (!Await(events, deadline)) return ConnectError(kNotInTime);
  }
  return absl::OkStatus();
}

absl::Status PostgresConnection::ConnectError(absl::string_view text) {
  ConnectFailure failure = ParseConnectFailure(text);
  // If libpq has no password, it ends the connection itself, without a SQLSTATE.
  if (failure.sqlstate.empty() && libpq().PQconnectionNeedsPassword(connection_.get()) != 0) {
    failure.sqlstate = "28P01";
  }
  const char* const pass_file = std::getenv("PGPASSFILE");
  if (absl::StartsWith(failure.sqlstate, "28") && pass_file != nullptr) {
    const std::string problem = PassFileProblem(pass_file);
    if (!problem.empty()) absl::StrAppend(&failure.message, " (PGPASSFILE: ", problem, ")");
  }
  const absl::Status error = PostgresError(failure.sqlstate, failure.message, place_);
  connection_.reset();
  return error;
}

bool PostgresConnection::Await(int16_t events, Deadline deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd socket{.fd = libpq().PQsocket(connection_.get()), .events = events, .revents = 0};
    const int timeout = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30));
    const int ready = poll(&socket, 1, timeout);
    if (ready > 0) return true;
    if (ready == 0 && Clock::now() >= deadline) return false;
    // If poll fails, libpq will find and explain the fault of its socket.
    if (ready < 0 && errno != EINTR) return true;
  }
}

void PostgresConnection::BeginCall() {
  last_sqlstate_.clear();
  last_command_.clear();
  last_warnings_.clear();
}

absl::StatusOr<SqlRows> PostgresConnection::RunBatch(const std::string& statements) {
  BeginCall();
  if (!usable()) return Lost("the connection was closed");
  if (libpq().PQsendQuery(connection_.get(), statements.c_str()) == 0) {
    return Lost(libpq().PQerrorMessage(connection_.get()));
  }
  return Receive();
}

absl::StatusOr<SqlRows> PostgresConnection::Run(absl::string_view statement,
                                                absl::Span<const PostgresValue> values) {
  return Send(statement, values, /*binary=*/false);
}

absl::StatusOr<SqlRows> PostgresConnection::Run(absl::string_view statement,
                                                absl::Span<const SqlValue> values) {
  std::vector<PostgresValue> arguments;
  arguments.reserve(values.size());
  for (const SqlValue& value : values) {
    std::visit([&](const auto& held) { arguments.emplace_back(held); }, value);
  }
  return Send(statement, arguments, /*binary=*/false);
}

absl::StatusOr<SqlRows> PostgresConnection::RunBinary(absl::string_view statement,
                                                      absl::Span<const PostgresValue> values) {
  return Send(statement, values, /*binary=*/true);
}

absl::StatusOr<SqlRows> PostgresConnection::Send(absl::string_view statement,
                                                 absl::Span<const PostgresValue> values,
                                                 bool binary) {
  BeginCall();
  if (!usable()) return Lost("the connection was closed");
  const PostgresArguments arguments(values);
  if (libpq().PQsendQueryParams(connection_.get(), std::string(statement).c_str(),
                                arguments.count(), arguments.types(), arguments.values(),
                                arguments.lengths(), arguments.formats(), binary ? 1 : 0) == 0) {
    return Lost(libpq().PQerrorMessage(connection_.get()));
  }
  return Receive();
}

absl::Status PostgresConnection::Flush(Deadline deadline) {
  for (;;) {
    const int left = libpq().PQflush(connection_.get());
    if (left < 0) return Lost(libpq().PQerrorMessage(connection_.get()));
    if (left == 0) return absl::OkStatus();
    if (!Await(POLLIN | POLLOUT, deadline)) return Lost(kNotInTime);
    // Reads while it sends, because otherwise both sides would wait for ever if the server had to
    // send something first.
    if (libpq().PQconsumeInput(connection_.get()) == 0)
      return Lost(libpq().PQerrorMessage(connection_.get()));
  }
}

absl::Status PostgresConnection::AwaitResult(Deadline deadline) {
  while (libpq().PQisBusy(connection_.get()) != 0) {
    if (!Await(POLLIN, deadline)) return Lost(kNotInTime);
    // After a failure the server's last message may still be readable.
    if (libpq().PQconsumeInput(connection_.get()) == 0 &&
        libpq().PQisBusy(connection_.get()) != 0) {
      return Lost(libpq().PQerrorMessage(connection_.get()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SqlRows> PostgresConnection::Receive() {
  const Deadline deadline = std::min(end_, After(timeouts_.statement + timeouts_.answer_grace));
  PHIMAP_RETURN_IF_ERROR(Flush(deadline));
  absl::StatusOr<SqlRows> rows = SqlRows();
  for (;;) {
    PHIMAP_RETURN_IF_ERROR(AwaitResult(deadline));
    const Result result(libpq().PQgetResult(connection_.get()));
    if (result == nullptr) break;
    switch (static_cast<int>(libpq().PQresultStatus(result.get()))) {
      case PGRES_COMMAND_OK:
      case PGRES_TUPLES_OK:
      case PGRES_EMPTY_QUERY:
        last_command_ = libpq().PQcmdStatus(result.get());
        if (rows.ok()) {
          rows = RowsOf(result.get(),
                        libpq().PQnfields(result.get()) > 0 && libpq().PQfformat(result.get(), 0));
        }
        break;
      default:  // No other status, of any release of libpq, is an answer to a statement.
        // The first error is the cause of the later ones.
        if (rows.ok()) rows = ErrorOf(result.get());
        if (libpq().PQstatus(connection_.get()) == CONNECTION_BAD) {
          connection_.reset();
          return rows;
        }
    }
  }
  if (libpq().PQstatus(connection_.get()) == CONNECTION_BAD) {
    if (rows.ok()) return Lost(libpq().PQerrorMessage(connection_.get()));
    connection_.reset();
  }
  return rows;
}

absl::Status PostgresConnection::ErrorOf(const pg_result* result) {
  last_sqlstate_ = Field(result, PG_DIAG_SQLSTATE);
  std::string message = Field(result, PG_DIAG_MESSAGE_PRIMARY);
  if (message.empty()) message = ParseConnectFailure(libpq().PQresultErrorMessage(result)).message;
  return PostgresError(last_sqlstate_, message, place_);
}

absl::Status PostgresConnection::Lost(absl::string_view what) {
  const std::string message = ParseConnectFailure(what).message;
  connection_.reset();
  return PostgresError("", message, place_);
}

void PostgresConnection::ReceiveNotice(void* connection, const pg_result* notice) {
  if (Field(notice, PG_DIAG_SEVERITY_NONLOCALIZED) != "WARNING") return;
  auto* const self = static_cast<PostgresConnection*>(connection);
  self->last_warnings_.push_back(Field(notice, PG_DIAG_MESSAGE_PRIMARY));
}

absl::Status PostgresConnection::Listen(absl::string_view channel) {
  BeginCall();
  if (!usable()) return Lost("the connection was closed");
  char* const quoted =
      libpq().PQescapeIdentifier(connection_.get(), channel.data(), channel.size());
  PHIMAP_CHECK(quoted != nullptr);  // The channel is a constant in UTF-8.
  const std::string statement = absl::StrCat("LISTEN ", quoted);
  libpq().PQfreemem(quoted);
  return RunBatch(statement).status();
}

absl::StatusOr<bool> PostgresConnection::WaitForNotification(Deadline deadline) {
  BeginCall();
  if (!usable()) return Lost("the connection was closed");
  for (;;) {
    bool notified = false;
    while (PGnotify* const notification = libpq().PQnotifies(connection_.get())) {
      libpq().PQfreemem(notification);
      notified = true;
    }
    if (notified) return true;
    if (!Await(POLLIN, deadline)) return false;
    if (libpq().PQconsumeInput(connection_.get()) == 0)
      return Lost(libpq().PQerrorMessage(connection_.get()));
  }
}

bool PostgresConnection::IsAlive() {
  if (!usable()) return false;
  // If there is something to read although no statement is running, it is a notice, a notification,
  // or the end of the connection, which consists of a last message and then the end of the stream.
  while (usable() && Await(POLLIN, Clock::now())) {
    if (libpq().PQconsumeInput(connection_.get()) == 0) connection_.reset();
    if (usable()) libpq().PQisBusy(connection_.get());  // Parses what was read.
  }
  return usable() && libpq().PQtransactionStatus(connection_.get()) == PQTRANS_IDLE;
}

bool PostgresConnection::in_transaction() const {
  return usable() && libpq().PQtransactionStatus(connection_.get()) != PQTRANS_IDLE;
}

int PostgresConnection::server_version() const {
  return usable() ? libpq().PQserverVersion(connection_.get()) : 0;
}

}  // namespace phimap
