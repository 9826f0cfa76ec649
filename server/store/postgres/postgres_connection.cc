#include "server/store/postgres/postgres_connection.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/postgres/libpq.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

struct Meaning {
  const char* prefix;  // Beginning of the SQLSTATE.
  Code code;
  const char* reason;
  const char* advice;
  int64_t retry_delay_ms = 0;
};

constexpr int64_t kRetryDelayMs = 1000;

// The first entry whose prefix matches the SQLSTATE applies.
constexpr Meaning kMeanings[] = {
    {"08", Code::kUnavailable, reason::kDatabaseUnavailable,
     "check that the server runs and can be reached", kRetryDelayMs},
    {"57014", Code::kUnavailable, reason::kDatabaseBusy,
     "the statement took too long; look into pg_stat_activity", kRetryDelayMs},
    {"57P", Code::kUnavailable, reason::kDatabaseUnavailable,
     "the server is starting or stopping, or ended this connection; try again", kRetryDelayMs},
    {"25P03", Code::kUnavailable, reason::kDatabaseUnavailable,
     "the server ended a transaction that waited too long; try again", kRetryDelayMs},
    {"25006", Code::kUnavailable, reason::kDatabaseReadOnly,
     "it is a standby, or default_transaction_read_only is on; name all hosts and "
     "target_session_attrs=read-write in the address",
     kRetryDelayMs},
    {"55P03", Code::kUnavailable, reason::kDatabaseBusy,
     "another session holds a lock for too long; look into pg_locks", kRetryDelayMs},
    {"40", Code::kUnavailable, reason::kDatabaseBusy, "other transactions interfered; try again",
     kRetryDelayMs},
    {"53300", Code::kUnavailable, reason::kDatabaseUnavailable,
     "raise max_connections, or put PgBouncer in front", kRetryDelayMs},
    {"53100", Code::kResourceExhausted, reason::kDiskFull, "free space on the database's disk"},
    {"53", Code::kResourceExhausted, reason::kDatabaseExhausted,
     "look into the log of the database server"},
    {"58", Code::kUnavailable, reason::kFileIoFailed, "look into the log of the database server",
     kRetryDelayMs},
    {"28", Code::kFailedPrecondition, reason::kDatabaseRefused,
     "check the user, the password in the file that PGPASSFILE names, the TLS parameters and "
     "pg_hba.conf"},
    {"3D000", Code::kFailedPrecondition, reason::kDatabaseRefused,
     "create the database, or correct its name in the address"},
    {"42501", Code::kFailedPrecondition, reason::kDatabaseRefused,
     "grant the user CREATE on the database, or all rights on the schema phimap"},
    {"42P01", Code::kFailedPrecondition, reason::kStoreInvalid,
     "the schema phimap lacks a table; restore it from a backup, or choose another database"},
    {"XX001", Code::kDataLoss, reason::kDatabaseDamaged, "restore the database from a backup"},
    {"XX002", Code::kDataLoss, reason::kDatabaseDamaged, "rebuild the index with REINDEX"},
    {"22021", Code::kInvalidArgument, reason::kTextInvalid, "send UTF-8 without NUL"},
    {"", Code::kInternal, reason::kDatabaseFailed, "please report this"},
};

const Meaning& MeaningOf(absl::string_view sqlstate) {
  // Without a SQLSTATE there was no answer at all, which is what class 08 means.
  if (sqlstate.empty()) return kMeanings[0];
  const Meaning* meaning = kMeanings;
  while (!absl::StartsWith(sqlstate, meaning->prefix)) ++meaning;
  return *meaning;
}

// Position of the SQLSTATE in `line` between "FATAL: " (in any language) and ": "; npos if the line
// has no SQLSTATE.
size_t FindState(absl::string_view line) {
  for (size_t at = line.find(":  "); at != line.npos; at = line.find(":  ", at + 1)) {
    const absl::string_view rest = line.substr(at + 3);
    if (rest.size() < 6 || rest[5] != ':') continue;
    bool is_state = true;
    for (const char c : rest.substr(0, 5)) {
      is_state = is_state && (absl::ascii_isdigit(c) || absl::ascii_isupper(c));
    }
    if (is_state) return at + 3;
  }
  return line.npos;
}

}  // namespace

std::string PostgresPlace::Text() const {
  return absl::StrCat("database \"", database, "\" on ", host, ":", port, " (user \"", user, "\")");
}

absl::Status PostgresError(absl::string_view sqlstate, absl::string_view message,
                           const PostgresPlace& place) {
  const Meaning& meaning = MeaningOf(sqlstate);
  const std::string state =
      sqlstate.empty() ? std::string() : absl::StrCat(" (SQLSTATE ", sqlstate, ")");
  const std::string where =
      absl::StrCat(place.Text(), ": ", absl::StripAsciiWhitespace(message), state);
  return MakeError(meaning.code, meaning.reason, "", absl::StrCat(where, "; ", meaning.advice),
                   {{"database", place.database},
                    {"host", place.host},
                    {"at", where},
                    {"sqlstate", std::string(sqlstate)}},
                   meaning.retry_delay_ms);
}

bool EndsConnection(absl::string_view sqlstate) {
  return absl::StartsWith(sqlstate, "08") || absl::StartsWith(sqlstate, "57P") ||
         sqlstate == "25006" || sqlstate == "25P03";
}

bool IsSerializationFailure(absl::string_view sqlstate) {
  return sqlstate == "40001" || sqlstate == "40P01";
}

ConnectFailure ParseConnectFailure(absl::string_view libpq_message) {
  ConnectFailure failure;
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(libpq_message, '\n', absl::SkipWhitespace())) {
    // Skips the line with the place in the source code. Its first word is translated, but the place
    // is not.
    if (absl::StrContains(line, ".c:")) continue;
    std::string text(absl::StripAsciiWhitespace(line));
    if (const size_t at = FindState(text); at != text.npos) {
      failure.sqlstate = text.substr(at, 5);
      text.erase(at, 7);
    }
    lines.push_back(std::move(text));
  }
  failure.message = absl::StrJoin(lines, "; ");
  return failure;
}

namespace {

// Values are converted to and from PostgreSQL's formats.

// Ids of types, which PostgreSQL never changes (catalog/pg_type_d.h).
constexpr Oid kUnknown = 0;
constexpr Oid kBool = 16;
constexpr Oid kBytea = 17;
constexpr Oid kInt8 = 20;
constexpr Oid kInt2 = 21;
constexpr Oid kInt4 = 23;
constexpr Oid kText = 25;
constexpr Oid kNumeric = 1700;  // The type of a sum of bigint values.

bool IsInteger(Oid type) { return type == kInt8 || type == kInt4 || type == kInt2; }

absl::Status BadColumn(Oid type) {
  return MakeError(absl::StatusCode::kInternal, reason::kDatabaseFailed, "",
                   absl::StrCat("a column has PostgreSQL's type ", type,
                                ", which is neither an integer nor text; please report this"));
}

int64_t FromNetworkOrder(absl::string_view bytes) {
  uint64_t number = (static_cast<unsigned char>(bytes[0]) & 0x80) != 0 ? ~uint64_t{0} : 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return static_cast<int64_t>(number);
}

absl::StatusOr<SqlRows::Cell> CellOfText(Oid type, absl::string_view text) {
  if (type == kBool) return SqlRows::Cell(int64_t{text == "t"});
  if (!IsInteger(type) && type != kNumeric) return SqlRows::Cell(std::string(text));
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) return BadColumn(type);
  return SqlRows::Cell(number);
}

absl::StatusOr<SqlRows::Cell> CellOfBinary(Oid type, absl::string_view bytes) {
  if (IsInteger(type) || type == kBool) return SqlRows::Cell(FromNetworkOrder(bytes));
  if (type == kText || type == kBytea) return SqlRows::Cell(std::string(bytes));
  return BadColumn(type);
}

// The parameters of a statement for PQsendQueryParams. All are in binary format, which needs no
// quoting and sends text with its length. Refers to the values that it was created from.
class PostgresArguments {
 public:
  explicit PostgresArguments(absl::Span<const PostgresValue> values);

  int count() const { return static_cast<int>(types_.size()); }
  const unsigned int* types() const { return types_.data(); }
  const char* const* values() const { return values_.data(); }
  const int* lengths() const { return lengths_.data(); }
  const int* formats() const { return formats_.data(); }

 private:
  void Add(unsigned int type, const char* value, size_t length);

  std::vector<unsigned int> types_;
  std::vector<const char*> values_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
  std::deque<std::array<char, 8>> integers_;  // In network order.
};

PostgresArguments::PostgresArguments(absl::Span<const PostgresValue> values) {
  for (const PostgresValue& value : values) {
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      std::array<char, 8>& bytes = integers_.emplace_back();
      for (int i = 0; i < 8; ++i) {
        bytes[i] = static_cast<char>(static_cast<uint64_t>(*integer) >> (56 - 8 * i));
      }
      Add(kInt8, bytes.data(), bytes.size());
    } else if (const auto* text = std::get_if<absl::string_view>(&value)) {
      // A null pointer would mean NULL, which differs from an empty text.
      Add(kText, text->data() == nullptr ? "" : text->data(), text->size());
    } else if (const auto* bytes = std::get_if<PostgresBytes>(&value)) {
      Add(kBytea, bytes->bytes.data() == nullptr ? "" : bytes->bytes.data(), bytes->bytes.size());
    } else {
      // The server infers the type from the place of the parameter in the statement.
      Add(kUnknown, nullptr, 0);
    }
  }
}

void PostgresArguments::Add(unsigned int type, const char* value, size_t length) {
  constexpr size_t kLongest = size_t{1} << 30;  // PostgreSQL's own limit of a value.
  PHIMAP_CHECK(length < kLongest);
  types_.push_back(type);
  values_.push_back(value);
  lengths_.push_back(static_cast<int>(length));
  formats_.push_back(1);
}

// Converts the rows of `result`, which are either all in text format or all in binary format.
// INTERNAL for a type that SqlRows cannot hold.
absl::StatusOr<SqlRows> RowsOf(const pg_result* result, bool binary) {
  SqlRows rows;
  const int columns = libpq().PQnfields(result);
  for (int row = 0; row < libpq().PQntuples(result); ++row) {
    std::vector<SqlRows::Cell> cells(static_cast<size_t>(columns));
    for (int column = 0; column < columns; ++column) {
      if (libpq().PQgetisnull(result, row, column)) continue;
      const absl::string_view value(libpq().PQgetvalue(result, row, column),
                                    static_cast<size_t>(libpq().PQgetlength(result, row, column)));
      const Oid type = libpq().PQftype(result, column);
      PHIMAP_ASSIGN_OR_RETURN(cells[static_cast<size_t>(column)],
                              binary ? CellOfBinary(type, value) : CellOfText(type, value));
    }
    rows.Add(std::move(cells));
  }
  return rows;
}

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

namespace {

std::string LocalSettings(const PostgresTimeouts& timeouts) {
  return absl::StrCat("SET LOCAL search_path = phimap, pg_catalog; SET LOCAL statement_timeout = ",
                      absl::ToInt64Milliseconds(timeouts.statement),
                      "; SET LOCAL lock_timeout = ", absl::ToInt64Milliseconds(timeouts.lock),
                      "; SET LOCAL idle_in_transaction_session_timeout = ",
                      absl::ToInt64Milliseconds(timeouts.idle_in_transaction), ";");
}

}  // namespace

absl::StatusOr<SqlRows> PostgresSession::Run(absl::string_view statement,
                                             absl::Span<const SqlValue> values) {
  if (!failure_.ok()) return failure_;
  return Noted(connection_->Run(statement, values));
}

absl::StatusOr<SqlRows> PostgresSession::RunBinary(absl::string_view statement,
                                                   absl::Span<const PostgresValue> values) {
  if (!failure_.ok()) return failure_;
  return Noted(connection_->RunBinary(statement, values));
}

absl::StatusOr<SqlRows> PostgresSession::Noted(absl::StatusOr<SqlRows> rows) {
  if (!rows.ok()) failure_ = rows.status();
  return rows;
}

std::string BeginRead(const PostgresTimeouts& timeouts) {
  return absl::StrCat("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ", LocalSettings(timeouts));
}

std::string BeginWrite(const PostgresTimeouts& timeouts) {
  // Keeps remote_apply, which is stricter than `on`, and replaces every weaker setting by `on`.
  return absl::StrCat("BEGIN ISOLATION LEVEL READ COMMITTED; ", LocalSettings(timeouts),
                      " SELECT set_config('synchronous_commit', CASE current_setting("
                      "'synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' "
                      "END, true);");
}

}  // namespace phimap
