#include "server/store/sqlite/sqlite_database.h"

#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

class Session final : public SqlSession {
 public:
  explicit Session(SqliteConnection& connection) : connection_(connection) {}

  absl::StatusOr<SqlRows> Run(absl::string_view sql, absl::Span<const SqlValue> values) override {
    PHIMAP_ASSIGN_OR_RETURN(SqliteStatement statement, connection_.Prepare(sql));
    for (const SqlValue& value : values) Bind(statement, value);
    SqlRows rows;
    for (;;) {
      PHIMAP_ASSIGN_OR_RETURN(const bool more, statement.Step());
      if (!more) return rows;
      std::vector<SqlRows::Cell> row;
      row.reserve(statement.columns());
      for (int column = 0; column < statement.columns(); ++column) {
        row.push_back(CellOf(statement, column));
      }
      rows.Add(std::move(row));
    }
  }

 private:
  static void Bind(SqliteStatement& statement, const SqlValue& value) {
    if (const auto* number = std::get_if<int64_t>(&value)) {
      statement.Bind(*number);
    } else if (const auto* text = std::get_if<absl::string_view>(&value)) {
      statement.Bind(*text);
    } else {
      statement.BindNull();
    }
  }
  static SqlRows::Cell CellOf(const SqliteStatement& statement, int column) {
    if (statement.IsNull(column)) return std::monostate();
    if (statement.IsInt(column)) return statement.Int(column);
    return statement.Text(column);
  }

  SqliteConnection& connection_;
};

// Returns the error for a commit that failed and could not be settled. The commit may appear after
// a crash.
absl::Status CommitInDoubt(const absl::Status& cause, absl::string_view what) {
  // The error has the facts of the cause, including its path.
  const ErrorDetail detail = DetailOf(cause).value_or(ErrorDetail());
  return MakeError(absl::StatusCode::kUnavailable, reason::kCommitInDoubt, "",
                   absl::StrCat("it is not known whether ", what,
                                "; check when the disk works again: ", cause.message()),
                   detail.metadata, 5000);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteDatabase>> SqliteDatabase::Open(const std::string& path,
                                                                     absl::Duration busy_timeout) {
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> writer,
                          SqliteConnection::Open(path, busy_timeout));
  PHIMAP_RETURN_IF_ERROR(PrepareSchema(writer.get()));
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> reader,
                          SqliteConnection::Open(path, busy_timeout));
  PHIMAP_RETURN_IF_ERROR(reader->Execute("PRAGMA query_only = ON; PRAGMA cell_size_check = ON;"));
  writer->AllowCheckpointOnClose();
  return std::unique_ptr<SqliteDatabase>(new SqliteDatabase(std::move(writer), std::move(reader)));
}

absl::Status SqliteDatabase::Read(Body body) {
  MutexLock lock(&read_mutex_);
  PHIMAP_RETURN_IF_ERROR(reader_->Execute("BEGIN"));
  Session session(*reader_);
  const absl::Status status = body(session);
  // The transaction wrote nothing. If the rollback fails, the next BEGIN reports it.
  if (reader_->in_transaction()) reader_->Execute("ROLLBACK").IgnoreError();
  return status;
}

void SqliteDatabase::RollBack() {
  // Some errors roll back on their own. If ROLLBACK fails, the next BEGIN reports it.
  if (writer_->in_transaction()) writer_->Execute("ROLLBACK").IgnoreError();
}

absl::Status SqliteDatabase::Settle() {
  if (!in_doubt_) return absl::OkStatus();
  const absl::Status status = writer_->Execute(
      "BEGIN IMMEDIATE; UPDATE store SET settled_commits = settled_commits + 1; COMMIT;");
  if (!status.ok()) {
    RollBack();
    return status;
  }
  in_doubt_ = false;
  return absl::OkStatus();
}

absl::Status SqliteDatabase::EmptyLog() {
  MutexLock lock(&write_mutex_);
  PHIMAP_ASSIGN_OR_RETURN(SqliteStatement statement,
                          writer_->Prepare("PRAGMA wal_checkpoint(TRUNCATE)"));
  PHIMAP_ASSIGN_OR_RETURN(const bool answered, statement.Step());
  // The first column is 0 unless another program blocked the checkpoint.
  if (answered && statement.Int(0) == 0) return absl::OkStatus();
  return MakeError(absl::StatusCode::kUnavailable, reason::kDatabaseBusy, "",
                   absl::StrCat(writer_->path(), ": another program reads it; try again"),
                   {{"path", writer_->path()}});
}

absl::Status SqliteDatabase::WriteAside(Body body) {
  // This is the same as Write, because a file has one writer at a time, and syncing later would
  // gain nothing.
  return Write(
      body, [](SqlSession&) { return false; },
      "the uses of versions that this server recorded were stored");
}

absl::Status SqliteDatabase::Write(Body body, IsStored is_stored, absl::string_view what) {
  MutexLock lock(&write_mutex_);
  PHIMAP_RETURN_IF_ERROR(Settle());
  PHIMAP_RETURN_IF_ERROR(writer_->Execute("BEGIN IMMEDIATE"));
  Session session(*writer_);
  if (const absl::Status status = body(session); !status.ok()) {
    RollBack();
    return status;
  }
  const absl::Status committed = writer_->Execute("COMMIT");
  if (committed.ok()) return absl::OkStatus();
  in_doubt_ = true;
  RollBack();
  if (const absl::Status settled = Settle(); !settled.ok()) {
    // If the log had no space for the commit, the log does not contain the commit, because the
    // write was cut short. The next transaction settles it nevertheless.
    const bool is_full = absl::IsResourceExhausted(committed) && absl::IsResourceExhausted(settled);
    return is_full ? committed : CommitInDoubt(committed, what);
  }
  const absl::StatusOr<bool> stored = is_stored(session);
  // The commit is settled, but its outcome cannot be read. For the caller it is still in doubt.
  if (!stored.ok()) {
    in_doubt_ = true;
    return CommitInDoubt(committed, what);
  }
  return *stored ? absl::OkStatus() : committed;
}

}  // namespace phimap
