// Interface of a database for the catalog: statements with values, read in one snapshot or written
// in one transaction. The statements are written once for all databases.
//
// A statement's parameters are $1, $2, … in the order of their first use. Values are integers of 64
// bits, text in UTF-8 and NULL; times are microseconds since 1970, and booleans are 0 or 1. Text
// compares byte by byte.
//
// Errors of every call: RESOURCE_EXHAUSTED (the disk is full), FAILED_PRECONDITION (read-only, no
// permission), DATA_LOSS (damaged), UNAVAILABLE (the disk or the connection fails, or another
// program holds a lock for too long).
#ifndef PHIMAP_SERVER_STORE_SQL_DATABASE_H_
#define PHIMAP_SERVER_STORE_SQL_DATABASE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace phimap {

// NULL, an integer or text.
using SqlValue = std::variant<std::monostate, int64_t, absl::string_view>;

// Result of a statement. Rows and columns count from 0.
class SqlRows {
 public:
  using Cell = std::variant<std::monostate, int64_t, std::string>;

  void Add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }

  size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  // REQUIRES: the cell is an integer (for Int) or text (for Text).
  int64_t Int(size_t row, size_t column) const { return std::get<int64_t>(rows_[row][column]); }
  const std::string& Text(size_t row, size_t column) const {
    return std::get<std::string>(rows_[row][column]);
  }
  bool IsInt(size_t row, size_t column) const {
    return std::holds_alternative<int64_t>(rows_[row][column]);
  }
  bool IsNull(size_t row, size_t column) const {
    return std::holds_alternative<std::monostate>(rows_[row][column]);
  }

 private:
  std::vector<std::vector<Cell>> rows_;
};

// Used by one thread at a time, and only within the body that received the session.
class SqlSession {
 public:
  virtual ~SqlSession() = default;
  // Runs one statement. Columns of the result are integers or text, as in the tables.
  virtual absl::StatusOr<SqlRows> Run(absl::string_view statement,
                                      absl::Span<const SqlValue> values = {}) = 0;
};

// Thread-safe. Every call may wait for a disk, a network or another writer.
class SqlDatabase {
 public:
  using Body = absl::FunctionRef<absl::Status(SqlSession&)>;
  // Returns whether a transaction that was written has been committed.
  using IsStored = absl::FunctionRef<absl::StatusOr<bool>(SqlSession&)>;

  virtual ~SqlDatabase() = default;

  // Runs `body`, which only reads, on one snapshot. It may be run again, from its beginning, when a
  // connection is lost.
  virtual absl::Status Read(Body body) = 0;
  // Runs `body` in one transaction, during which no other process writes. It may be run again, from
  // its beginning, if a connection is lost before COMMIT. OK means that the transaction is
  // committed and survives a crash. If `body` returns an error, that error is returned and nothing
  // is stored. If COMMIT fails, so that its outcome is unknown, `is_stored` reads the outcome in a
  // later transaction; if that fails too, the error has the reason COMMIT_IN_DOUBT and contains
  // `what`, the change in words ("version 3 of \"letters\" was deleted"). While a commit is in
  // doubt, nothing else is written.
  virtual absl::Status Write(Body body, IsStored is_stored, absl::string_view what) = 0;
  // Runs `body` in one transaction that changes no revision and sends no notification. If the
  // database permits it, the call does not wait for writers of other rows, and returns before the
  // transaction is on disk. The transaction is durable as soon as a later one is. `body` may run
  // twice.
  virtual absl::Status WriteAside(Body body) = 0;
  // Whether a commit of this process is in doubt. Read does not show such a commit, but it may
  // appear after a crash. Never waits.
  virtual bool in_doubt() const = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_SQL_DATABASE_H_
