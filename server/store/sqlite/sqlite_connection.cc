#include "server/store/sqlite/sqlite_connection.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// File mode of the database, the same as that of the blobs. SQLite's default would let all users
// read it.
constexpr mode_t kDatabaseMode = 0640;

// Creates the file with kDatabaseMode; SQLite gives its log files the mode of the database. O_EXCL
// leaves an existing file alone, because closing a descriptor of a file that is already open would
// drop this process's locks on it. If the file cannot be created, SQLite will find and explain the
// reason as well.
void CreateWithMode(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kDatabaseMode);
  if (fd >= 0) close(fd);
}

struct ResultMeaning {
  absl::StatusCode code;
  const char* reason;
  const char* advice;
  int64_t retry_delay_ms = 0;
};

ResultMeaning MeaningOfResult(int result) {
  switch (result & 0xff) {  // The primary code; the rest says where it happened.
    case SQLITE_FULL:
      return {absl::StatusCode::kResourceExhausted, reason::kDiskFull,
              "free space or raise the quota, then try again"};
    case SQLITE_NOMEM:
      return {absl::StatusCode::kResourceExhausted, reason::kMachineMemoryFull,
              "give the process more memory"};
    case SQLITE_READONLY:
      return {absl::StatusCode::kFailedPrecondition, reason::kFileSystemReadOnly,
              "make the data directory writable"};
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {absl::StatusCode::kFailedPrecondition, reason::kFilePermissionDenied,
              "give the user of this process read and write permission"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {absl::StatusCode::kDataLoss, reason::kDatabaseDamaged,
              "restore it from a backup; nothing in the data directory was removed"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {absl::StatusCode::kUnavailable, reason::kDatabaseBusy,
              "another program holds a lock on it; try again", 1000};
    case SQLITE_IOERR:
    case SQLITE_PROTOCOL:
      return {absl::StatusCode::kUnavailable, reason::kFileIoFailed,
              "look for disk errors in the kernel log"};
    default:
      return {absl::StatusCode::kInternal, reason::kDatabaseFailed, "please report this"};
  }
}

absl::Status SqliteError(sqlite3* connection, int result, const std::string& path) {
  const ResultMeaning meaning = MeaningOfResult(result);
  const char* message = connection == nullptr ? sqlite3_errstr(result) : sqlite3_errmsg(connection);
  return MakeError(
      meaning.code, meaning.reason, "",
      absl::StrCat(path, ": ", message, " (SQLite code ", result, "); ", meaning.advice),
      {{"path", path}, {"sqlite_code", absl::StrCat(result)}}, meaning.retry_delay_ms);
}

}  // namespace

void SqliteStatement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);  // Its result repeats that of the last Step.
}

SqliteStatement::SqliteStatement(sqlite3* connection, sqlite3_stmt* statement, std::string path)
    : connection_(connection), statement_(statement), path_(std::move(path)) {}

SqliteStatement& SqliteStatement::Bind(int64_t value) {
  const int result = sqlite3_bind_int64(statement_.get(), next_parameter_++, value);
  if (bind_error_ == SQLITE_OK) bind_error_ = result;
  return *this;
}

SqliteStatement& SqliteStatement::Bind(absl::string_view text) {
  // A null pointer would bind NULL, which differs from an empty text.
  const char* data = text.data() == nullptr ? "" : text.data();
  const int result = sqlite3_bind_text64(statement_.get(), next_parameter_++, data, text.size(),
                                         SQLITE_TRANSIENT, SQLITE_UTF8);
  if (bind_error_ == SQLITE_OK) bind_error_ = result;
  return *this;
}

SqliteStatement& SqliteStatement::BindNull() {
  const int result = sqlite3_bind_null(statement_.get(), next_parameter_++);
  if (bind_error_ == SQLITE_OK) bind_error_ = result;
  return *this;
}

absl::StatusOr<bool> SqliteStatement::Step() {
  if (bind_error_ != SQLITE_OK) return SqliteError(connection_, bind_error_, path_);
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  return SqliteError(connection_, result, path_);
}

absl::Status SqliteStatement::Run() {
  PHIMAP_ASSIGN_OR_RETURN(const bool row, Step());
  PHIMAP_CHECK(!row);
  return absl::OkStatus();
}

int64_t SqliteStatement::Int(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string SqliteStatement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return "";
  return std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

bool SqliteStatement::IsNull(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

bool SqliteStatement::IsInt(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_INTEGER;
}

int SqliteStatement::columns() const { return sqlite3_column_count(statement_.get()); }

void SqliteConnection::Close::operator()(sqlite3* connection) const {
  // All statements have been finalized by now, so the connection cannot be busy.
  PHIMAP_CHECK(sqlite3_close(connection) != SQLITE_BUSY);
}

SqliteConnection::SqliteConnection(std::string path, sqlite3* connection)
    : path_(std::move(path)), connection_(connection) {}

absl::StatusOr<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(
    const std::string& path, absl::Duration busy_timeout) {
  CreateWithMode(path);
  sqlite3* connection = nullptr;
  const int result = sqlite3_open_v2(
      path.c_str(), &connection,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      nullptr);
  // SQLite returns a handle even if it fails to open the file, and the handle must be closed.
  std::unique_ptr<SqliteConnection> database(new SqliteConnection(path, connection));
  if (result != SQLITE_OK) return SqliteError(connection, result, path);
  sqlite3_busy_timeout(connection, static_cast<int>(absl::ToInt64Milliseconds(busy_timeout)));
  sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return database;
}

absl::Status SqliteConnection::Execute(const std::string& sql) {
  const int result = sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) return SqliteError(connection_.get(), result, path_);
  return absl::OkStatus();
}

absl::StatusOr<SqliteStatement> SqliteConnection::Prepare(absl::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int result = sqlite3_prepare_v2(connection_.get(), sql.data(), static_cast<int>(sql.size()),
                                        &statement, nullptr);
  if (result != SQLITE_OK) return SqliteError(connection_.get(), result, path_);
  return SqliteStatement(connection_.get(), statement, path_);
}

absl::StatusOr<int64_t> SqliteConnection::QueryInt(absl::string_view sql) {
  PHIMAP_ASSIGN_OR_RETURN(SqliteStatement statement, Prepare(sql));
  PHIMAP_ASSIGN_OR_RETURN(const bool row, statement.Step());
  PHIMAP_CHECK(row);
  return statement.Int(0);
}

absl::StatusOr<std::string> SqliteConnection::QueryText(absl::string_view sql) {
  PHIMAP_ASSIGN_OR_RETURN(SqliteStatement statement, Prepare(sql));
  PHIMAP_ASSIGN_OR_RETURN(const bool row, statement.Step());
  PHIMAP_CHECK(row);
  return statement.Text(0);
}

bool SqliteConnection::in_transaction() const {
  return sqlite3_get_autocommit(connection_.get()) == 0;
}

void SqliteConnection::AllowCheckpointOnClose() {
  sqlite3_db_config(connection_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
}

}  // namespace phimap
