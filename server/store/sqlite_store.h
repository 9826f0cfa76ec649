// The embedded store: rows in DIR/phimap.sqlite, artifacts in DIR/blobs. docs/store.md describes
// the files.
//
// How the invariants of Store are kept:
//   1. Publish writes the blob durably (blob_store.h) before the transaction that names it.
//   2. Numbers come from mappings.next_version, which no deletion touches.
//   3. Version and build are inserted in one transaction (catalog.h).
//   4. A failed Publish removes its blob again, unless a version or a concurrent publisher refers
//   to it. What could not
//      be removed at once (the disk failed, the commit is in doubt) is removed with the next write,
//      or at start-up.
//   5. The transaction that deletes looks for aliases; a foreign key holds beneath it.
//   6. A deletion removes a blob after its commit, in the same way and with the same care as 4.
#ifndef PHIMAP_SERVER_STORE_SQLITE_STORE_H_
#define PHIMAP_SERVER_STORE_SQLITE_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "server/store/blob_store.h"
#include "server/store/catalog.h"
#include "server/store/file_system.h"
#include "server/store/store.h"
#include "server/sync/mutex.h"

namespace phimap {

struct SqliteStoreOptions {
  // Created if missing; its parent must exist. On a local file system: neither locks nor the
  // write-ahead log work reliably on a network share.
  std::string data_dir;
  // Called under no lock of the caller, from any thread.
  std::function<absl::Time()> clock = [] { return absl::Now(); };
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

// Thread-safe. Holds an exclusive lock on the directory until destroyed. One connection serves all
// calls in turn; the artifact, which is the large part, is written and read outside that lock.
//
// RecordFailedBuild takes `end_time` from the record; an unset one (absl::Time()) becomes the
// store's clock.
class SqliteStore : public Store {
 public:
  // Locks, checks and tidies the directory. `file_system` outlives the store. Errors:
  // FAILED_PRECONDITION (locked, read-only, newer schema, not our database), DATA_LOSS (database
  // damaged, missing or of another store; then nothing was removed), RESOURCE_EXHAUSTED,
  // UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const SqliteStoreOptions& options,
                                                           FileSystem* file_system);

  absl::StatusOr<VersionRecord> Publish(const PublishRequest& request,
                                        absl::string_view artifact) override;
  absl::StatusOr<VersionRecord> Import(const VersionRecord& version,
                                       absl::string_view artifact) override;
  absl::Status RecordFailedBuild(const BuildRecord& record) override;
  absl::StatusOr<BuildRecord> GetBuild(absl::string_view mapping,
                                       absl::string_view build_id) override;
  absl::StatusOr<MappingRecord> GetMapping(absl::string_view name) override;
  absl::StatusOr<std::vector<MappingRecord>> ListMappings(absl::string_view after,
                                                          int limit) override;
  absl::StatusOr<VersionRecord> GetVersion(absl::string_view mapping,
                                           std::optional<int64_t> number) override;
  absl::StatusOr<std::vector<VersionRecord>> ListVersions(absl::string_view mapping,
                                                          std::optional<int64_t> before,
                                                          int limit) override;
  absl::StatusOr<VersionRecord> GetAliasedVersion(absl::string_view mapping,
                                                  absl::string_view alias) override;
  absl::StatusOr<std::string> ReadArtifact(absl::string_view digest) override;
  absl::StatusOr<std::string> ReadArtifactRange(absl::string_view digest, int64_t offset,
                                                int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenArtifact(absl::string_view digest) override;
  absl::StatusOr<AliasRecord> SetAlias(absl::string_view mapping, absl::string_view alias,
                                       int64_t version, absl::string_view etag) override;
  absl::Status DeleteAlias(absl::string_view mapping, absl::string_view alias,
                           absl::string_view etag) override;
  absl::Status DeleteVersion(absl::string_view mapping, int64_t number,
                             Rollbacks rollbacks = Rollbacks::kKeep) override;
  absl::Status DeleteMapping(absl::string_view mapping) override;

  const StartupReport& startup_report() const { return startup_report_; }

 private:
  SqliteStore(const SqliteStoreOptions& options, FileSystem* file_system);

  // The steps of Open, in order.
  absl::Status LockDirectory();
  absl::Status OpenCatalog();
  absl::Status Tidy();

  // Called with mutex_ held, and the catalog settled.
  using Check = std::function<absl::Status(Catalog&)>;
  using Insert = std::function<absl::StatusOr<VersionRecord>(Catalog&)>;
  // Fills in the digests that the deleted rows had.
  using Remove = std::function<absl::Status(Catalog&, std::vector<std::string>*)>;
  // Writes the artifact durably, then inserts the row that names it. `check` saves writing in vain;
  // `what` goes into the error of a commit in doubt.
  absl::StatusOr<VersionRecord> Add(const std::string& digest, absl::string_view artifact,
                                    const Check& check, const Insert& insert,
                                    const std::string& what) ABSL_LOCKS_EXCLUDED(mutex_);
  // Announces that this digest's blob is about to be written: from here to Unpin nobody removes it.
  absl::Status Pin(const std::string& digest, const Check& check) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<VersionRecord> Commit(const Insert& insert, const std::string& what)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unpin(const std::string& digest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Delete(const Remove& remove, const std::string& what) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes blobs that were written in vain, or deleted, and that nobody refers to. What cannot be
  // removed or judged now stays listed.
  void RemoveGarbage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<int64_t> ArtifactSizeBytes(absl::string_view digest) ABSL_LOCKS_EXCLUDED(mutex_);
  // A blob that cannot be read because its version was deleted meanwhile is not damaged.
  absl::Status UnlessDeleted(absl::string_view digest, const absl::Status& error)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const SqliteStoreOptions options_;
  FileSystem* const file_system_;
  BlobStore blobs_;
  // Before the catalog, so that it is released after the database is closed.
  std::unique_ptr<FileLock> directory_lock_;
  StartupReport startup_report_;

  Mutex mutex_;
  std::unique_ptr<Catalog> catalog_ ABSL_GUARDED_BY(mutex_);
  // Publishers at work, by digest.
  absl::flat_hash_map<std::string, int> pins_ ABSL_GUARDED_BY(mutex_);
  // Digests whose publisher failed, or whose version was deleted.
  absl::flat_hash_set<std::string> garbage_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_SQLITE_STORE_H_
