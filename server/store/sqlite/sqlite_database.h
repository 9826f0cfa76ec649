// A SQLite file as the database of a catalog: one connection that writes and one that reads, so
// that no reader waits for another program's write lock.
//
// Commits in doubt. When COMMIT fails (for instance because fsync reports an error), the
// transaction's frames may be in the write-ahead log nevertheless: this process does not see them,
// but recovery after a crash would. So after a failed COMMIT the file is in doubt until another,
// empty transaction has been committed. The empty transaction overwrites the doubtful frames or is
// written after them. Either way, later reads show the state that a crash would leave. Nothing else
// is written in the meantime.
#ifndef PHIMAP_SERVER_STORE_SQLITE_SQLITE_DATABASE_H_
#define PHIMAP_SERVER_STORE_SQLITE_SQLITE_DATABASE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/thread/mutex.h"
#include "server/store/files/file_system.h"
#include "server/store/sql_database.h"
#include "server/store/sqlite/sqlite_connection.h"

namespace phimap {

// The tables of phimap.sqlite, and the checks that a file must pass before it is used: schema.cc.

// Schema version, stored in the file's user_version. A file with a greater number was written by a
// newer phimap and is rejected. A file with a smaller number is migrated.
inline constexpr int64_t kSchemaVersion = 7;
// Stored in the file's application_id: "phim". Distinguishes our files from other SQLite databases.
inline constexpr int64_t kApplicationId = 0x7068696d;

// Prepares `database` for use. Rejects a newer schema or a foreign file (FAILED_PRECONDITION) and a
// damaged file (DATA_LOSS) before it writes anything. Then sets the connection's pragmas, and
// creates or migrates the tables in one transaction.
absl::Status PrepareSchema(SqliteConnection* database);

class SqliteDatabase final : public SqlDatabase {
 public:
  // Opens the file, creates its tables when it is empty, and checks it (schema.cc). `busy_timeout`:
  // how long to wait for another program's lock before UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<SqliteDatabase>> Open(const std::string& path,
                                                              absl::Duration busy_timeout);

  // Holds `lock` until the file is closed.
  void Keep(std::unique_ptr<FileLock> lock) { lock_ = std::move(lock); }

  absl::Status Read(Body body) ABSL_LOCKS_EXCLUDED(read_mutex_) override;
  absl::Status Write(Body body, IsStored is_stored, absl::string_view what)
      ABSL_LOCKS_EXCLUDED(write_mutex_) override;
  absl::Status WriteAside(Body body) ABSL_LOCKS_EXCLUDED(write_mutex_) override;
  // Moves the whole write-ahead log into the file, durably, and empties the log. Afterwards the
  // file alone is the database. (Closing the file would do this too, but might fail silently.)
  // UNAVAILABLE while another program reads.
  absl::Status EmptyLog() ABSL_LOCKS_EXCLUDED(write_mutex_);
  bool in_doubt() const override { return in_doubt_.load(std::memory_order_acquire); }

 private:
  SqliteDatabase(std::unique_ptr<SqliteConnection> writer, std::unique_ptr<SqliteConnection> reader)
      : writer_(std::move(writer)), reader_(std::move(reader)) {}

  // Settles a commit that is in doubt. Returns OK at once if there is none.
  absl::Status Settle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  void RollBack() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  // Released after the file is closed.
  std::unique_ptr<FileLock> lock_;

  Mutex write_mutex_;
  // Written only under write_mutex_.
  std::atomic<bool> in_doubt_{false};
  const std::unique_ptr<SqliteConnection> writer_ ABSL_PT_GUARDED_BY(write_mutex_);

  // The reader is closed before the writer, because the connection that is closed last moves the
  // log into the file.
  Mutex read_mutex_;
  const std::unique_ptr<SqliteConnection> reader_ ABSL_PT_GUARDED_BY(read_mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_SQLITE_SQLITE_DATABASE_H_
