// The embedded store: rows in DIR/phimap.sqlite, artifacts in DIR/blobs. docs/store.md describes
// the files.
#ifndef PHIMAP_SERVER_SQLITE_SQLITE_STORE_H_
#define PHIMAP_SERVER_SQLITE_SQLITE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/files/file_system.h"
#include "server/sqlite/disk_reserve.h"
#include "server/store/catalog_store.h"
#include "server/store/sql_database.h"
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

// The cleanup that Open has done, so that it can be logged.
struct StartupReport {
  int64_t removed_builds = 0;
};

// Holds an exclusive lock on the directory until it is destroyed.
class SqliteStore final : public CatalogStore {
 public:
  // Locks, checks and tidies the directory. `file_system` must outlive the store. Errors:
  // FAILED_PRECONDITION (locked, read-only, newer schema, not our database), DATA_LOSS (database
  // damaged, missing or of another store; then nothing was removed), RESOURCE_EXHAUSTED,
  // UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const SqliteStoreOptions& options,
                                                           FileSystem* file_system);

  // If the disk is full, these functions delete the reserve file and try again, and artifacts that
  // become unreferenced are removed at once.
  absl::Status DeleteVersion(absl::string_view mapping, int64_t number,
                             Rollbacks rollbacks = Rollbacks::kKeep,
                             absl::string_view operation_id = {}) override;
  absl::Status DeleteMapping(absl::string_view mapping, Occupied occupied = Occupied::kDelete,
                             absl::string_view operation_id = {}) override;
  absl::StatusOr<std::vector<VersionName>> DeleteExpired() override;

  // Creates the reserve file if it is missing and there is space. Blocking; opening the store does
  // not wait for it.
  void MakeReserve() { reserve_.Make(); }

  const StartupReport& startup_report() const { return startup_report_; }
  // The parts of the store. The directory stays locked while the database is in use.
  const std::shared_ptr<SqlDatabase>& database() const { return database_; }
  const std::shared_ptr<Blobs>& blobs() const { return blobs_; }
  const std::shared_ptr<StoreClock>& clock() const { return clock_; }

 private:
  absl::Status DeleteOnFullDisk(absl::FunctionRef<absl::Status()> remove);

  SqliteStore(DiskReserve reserve, std::shared_ptr<SqlDatabase> database,
              std::unique_ptr<Catalog> catalog, std::shared_ptr<Blobs> blobs,
              std::shared_ptr<StoreClock> clock, const StartupReport& startup_report)
      : CatalogStore(std::move(catalog), blobs),
        reserve_(std::move(reserve)),
        database_(std::move(database)),
        blobs_(std::move(blobs)),
        clock_(std::move(clock)),
        startup_report_(startup_report) {}

  DiskReserve reserve_;
  const std::shared_ptr<SqlDatabase> database_;
  const std::shared_ptr<Blobs> blobs_;
  const std::shared_ptr<StoreClock> clock_;
  const StartupReport startup_report_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SQLITE_SQLITE_STORE_H_
