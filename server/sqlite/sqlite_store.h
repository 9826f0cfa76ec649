// The embedded store: rows in DIR/phimap.sqlite, artifacts in DIR/blobs. docs/store.md describes
// the files.
#ifndef PHIMAP_SERVER_SQLITE_SQLITE_STORE_H_
#define PHIMAP_SERVER_SQLITE_SQLITE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/files/file_system.h"
#include "server/store/catalog_store.h"

namespace phimap {

struct SqliteStoreOptions {
  // Created if missing; its parent must exist. On a local file system: neither locks nor the
  // write-ahead log work reliably on a network share.
  std::string data_dir;
  CatalogStore::Clock clock = [] { return absl::Now(); };
  // How long to wait for another program that locked the database (a backup does not) before
  // UNAVAILABLE.
  absl::Duration busy_timeout = absl::Seconds(5);
};

// What start-up tidied away, for the log.
struct StartupReport {
  int64_t removed_temporary_files = 0;
  int64_t removed_blobs = 0;
  int64_t removed_builds = 0;
};

// Holds an exclusive lock on the directory until destroyed.
class SqliteStore final : public CatalogStore {
 public:
  // Locks, checks and tidies the directory. `file_system` outlives the store. Errors:
  // FAILED_PRECONDITION (locked, read-only, newer schema, not our database), DATA_LOSS (database
  // damaged, missing or of another store; then nothing was removed), RESOURCE_EXHAUSTED,
  // UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const SqliteStoreOptions& options,
                                                           FileSystem* file_system);

  const StartupReport& startup_report() const { return startup_report_; }

 private:
  SqliteStore(std::unique_ptr<Catalog> catalog, std::unique_ptr<Blobs> blobs, Clock clock,
              const StartupReport& startup_report)
      : CatalogStore(std::move(catalog), std::move(blobs), std::move(clock)),
        startup_report_(startup_report) {}

  const StartupReport startup_report_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SQLITE_SQLITE_STORE_H_
