// The embedded store: rows in DIR/phimap.sqlite, artifacts in DIR/blobs. docs/store.md describes
// the files.
#ifndef PHIMAP_SERVER_STORE_SQLITE_SQLITE_STORE_H_
#define PHIMAP_SERVER_STORE_SQLITE_SQLITE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/blobs.h"
#include "server/store/files/file_system.h"
#include "server/store/sql_database.h"
#include "server/store/store.h"
#include "server/store/store_clock.h"

namespace phimap {

struct SqliteStoreOptions {
  // Directory of the store. Created if missing; its parent must exist. It must be on a local file
  // system, because neither locks nor the write-ahead log work reliably on a network share.
  std::string data_dir;
  // The monotonic clock with which that of the database is compared.
  StoreClock::Steady steady = [] { return SteadyNow(); };
  // Maximum wait for another program that has locked the database (a backup does not lock it),
  // after which calls return UNAVAILABLE.
  absl::Duration busy_timeout = absl::Seconds(5);
  // Size of a file in the directory that is deleted when the disk is full, so that versions can be
  // deleted; 0 means no such file.
  int64_t reserve_bytes = int64_t{4} << 20;
};

// A file that is deleted when the disk is full, so that there is enough space for a deletion of
// versions, which frees more space. Several DiskReserves may share the file. Thread-safe.
class DiskReserve {
 public:
  // `file_system` must outlive this object. With 0 bytes there is no reserve.
  DiskReserve(std::string path, int64_t bytes, FileSystem* file_system)
      : path_(std::move(path)), bytes_(bytes), file_system_(file_system) {}

  // Writes the file unless it is complete. If the disk has too little space, leaves no file.
  void Make();
  // Deletes the file. Returns whether that succeeded.
  bool GiveUp() { return file_system_->Remove(path_).ok(); }

 private:
  const std::string path_;
  const int64_t bytes_;
  FileSystem* const file_system_;
};

// The cleanup that Open has done, so that it can be logged.
struct StartupReport {
  int64_t removed_builds = 0;
};

// Holds an exclusive lock on the directory until it is destroyed.
class SqliteStore final : public Store {
 public:
  // Locks, checks and tidies the directory. `file_system` must outlive the store. Errors:
  // FAILED_PRECONDITION (locked, read-only, newer schema, not our database), DATA_LOSS (database
  // damaged, missing or of another store; then nothing was removed), RESOURCE_EXHAUSTED,
  // UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const SqliteStoreOptions& options,
                                                           FileSystem* file_system);

  // Creates the reserve file if it is missing and there is space. Blocking; opening the store does
  // not wait for it.
  void MakeReserve() { reserve_.Make(); }

  const StartupReport& startup_report() const { return startup_report_; }

 private:
  // The directory stays locked while `database` is in use.
  SqliteStore(std::shared_ptr<SqlDatabase> database, std::shared_ptr<Blobs> blobs,
              std::shared_ptr<StoreClock> clock, DiskReserve reserve)
      : Store(std::move(database), std::move(blobs), std::move(clock)),
        reserve_(std::move(reserve)) {}

  // If the disk is full, deletes the reserve file and tries again. Then artifacts that become
  // unreferenced are removed at once.
  absl::Status Delete(absl::FunctionRef<absl::Status()> remove) override;

  DiskReserve reserve_;
  StartupReport startup_report_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_SQLITE_SQLITE_STORE_H_
