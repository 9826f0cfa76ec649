// A SQLite connection and its statements. Results and errors are returned as StatusOr. This class
// does not know the catalog's tables.
#ifndef PHIMAP_SERVER_STORE_SQLITE_SQLITE_CONNECTION_H_
#define PHIMAP_SERVER_STORE_SQLITE_SQLITE_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

struct sqlite3;
struct sqlite3_stmt;

namespace phimap {

// A prepared statement. Parameters count from 1, columns from 0, as in SQLite. Must not outlive its
// connection.
class SqliteStatement {
 public:
  SqliteStatement(sqlite3* connection, sqlite3_stmt* statement, std::string path);

  // Binds the next parameter, in order.
  SqliteStatement& Bind(int64_t value);
  SqliteStatement& Bind(absl::string_view text);
  SqliteStatement& BindNull();

  // Returns true if there is a row, and false at the end.
  absl::StatusOr<bool> Step();
  // Steps a statement that returns no rows.
  absl::Status Run();

  // REQUIRES: the last Step returned true.
  int64_t Int(int column) const;
  std::string Text(int column) const;
  bool IsNull(int column) const;
  bool IsInt(int column) const;
  int columns() const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  sqlite3* const connection_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  const std::string path_;
  int next_parameter_ = 1;
  int bind_error_ = 0;
};

// One connection. Not thread-safe: the caller holds a lock. Errors contain the file's path and the
// remedy: RESOURCE_EXHAUSTED (full disk), FAILED_PRECONDITION (read-only, no permission), DATA_LOSS
// (damaged file), UNAVAILABLE (I/O error; locked by another program for longer than the busy
// timeout).
class SqliteConnection {
 public:
  // Opens or creates the file. Until AllowCheckpointOnClose is called, closing the connection
  // changes nothing: the write-ahead log stays as it is.
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> Open(const std::string& path,
                                                                absl::Duration busy_timeout);

  // Runs SQL without parameters and ignores its rows.
  absl::Status Execute(const std::string& sql);
  absl::StatusOr<SqliteStatement> Prepare(absl::string_view sql);
  // Returns the first column of the first row of a statement without parameters.
  absl::StatusOr<int64_t> QueryInt(absl::string_view sql);
  absl::StatusOr<std::string> QueryText(absl::string_view sql);

  bool in_transaction() const;
  void AllowCheckpointOnClose();
  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  SqliteConnection(std::string path, sqlite3* connection);

  const std::string path_;
  const std::unique_ptr<sqlite3, Close> connection_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_SQLITE_SQLITE_CONNECTION_H_
