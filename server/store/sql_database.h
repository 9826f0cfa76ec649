// Interface of a database for the catalog: statements with values, read in one snapshot or written
// in one transaction. The statements are written once for all databases.
//
// A statement's parameters are $1, $2, … in the order of their first use. Values are integers of 64
// bits, text in UTF-8 and NULL; times are microseconds since 1970, truth is 0 or 1. Text compares
// byte by byte.
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
  // REQUIRES: the cell is an integer; text.
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

// One thread at a time, and only within the body that it was given to.
class SqlSession {
 public:
  virtual ~SqlSession() = default;
  // Runs one statement. Columns of the result are integers or text, as the tables have them.
  virtual absl::StatusOr<SqlRows> Run(absl::string_view statement,
                                      absl::Span<const SqlValue> values = {}) = 0;
};

// Thread-safe. Every call may wait: for a disk, a network, another writer.
class SqlDatabase {
 public:
  using Body = absl::FunctionRef<absl::Status(SqlSession&)>;
  // Whether a transaction that was written did commit.
  using IsStored = absl::FunctionRef<absl::StatusOr<bool>(SqlSession&)>;

  virtual ~SqlDatabase() = default;

  // Runs `body`, which only reads, on one snapshot. It may be run again, from its beginning, when a
  // connection is lost.
  virtual absl::Status Read(Body body) = 0;
  // Runs `body` in one transaction, during which no process writes. It may be run again, from its
  // beginning, when a connection is lost before COMMIT. OK: it is committed and survives a crash.
  // An error of `body` is returned, and nothing is stored. When COMMIT fails, so that its outcome
  // is unknown, `is_stored` reads the outcome in a later transaction; if that fails too, the error
  // has the reason COMMIT_IN_DOUBT and names `what` ("version 3 of \"letters\" was deleted"). While
  // a commit is in doubt nothing else is written.
  virtual absl::Status Write(Body body, IsStored is_stored, absl::string_view what) = 0;
  // Runs `body` in one transaction that changes no revision and sends no notice. If the database
  // permits it, it does not wait for writers of other rows, and returns before it is on disk: it is
  // durable whenever a later transaction is. The transaction may run twice.
  virtual absl::Status WriteAside(Body body) = 0;
  // Whether a commit of this process is in doubt: Read does not show it, but a crash may bring it
  // to light. Never waits.
  virtual bool in_doubt() const = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_SQL_DATABASE_H_
