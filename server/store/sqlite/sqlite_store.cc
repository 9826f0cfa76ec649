#include "server/store/sqlite/sqlite_store.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/files/file_blobs.h"
#include "server/store/garbage_collector.h"
#include "server/store/sqlite/sqlite_database.h"

namespace phimap {
namespace {

// RefuseLostDatabase and ConfirmIdentity distinguish a fresh data directory from one that lost its
// database, so that no blob is ever removed because the wrong database does not know it.
//
// The database carries a random store id. The file blobs/STORE repeats the id; it is written once,
// after the database is durable and before the first blob. This gives the following cases:
//
//   phimap.sqlite         blobs/STORE and blobs   meaning
//   absent or empty       neither, no -wal file   fresh: create both
//   absent or empty       any of them             the database was lost: DATA_LOSS
//   present               STORE has its id        normal: blobs without a version are garbage
//   present, no mappings  neither                 creation stopped before STORE: write STORE
//   present               anything else           they do not belong together: DATA_LOSS
constexpr char kMarkerName[] = "STORE";
constexpr int64_t kMarkerLimitBytes = 64;

absl::StatusOr<std::optional<std::string>> ReadMarker(const FileBlobs& blobs,
                                                      FileSystem* file_system) {
  absl::StatusOr<std::string> marker =
      file_system->ReadFile(absl::StrCat(blobs.blobs_path(), "/", kMarkerName), kMarkerLimitBytes);
  if (marker.ok()) return *std::move(marker);
  if (absl::IsNotFound(marker.status())) return std::nullopt;
  if (absl::IsOutOfRange(marker.status())) return "damaged";  // This differs from every id.
  return marker.status();
}

absl::StatusOr<int64_t> SizeOrZero(const std::string& path, FileSystem* file_system) {
  absl::StatusOr<int64_t> size = file_system->SizeBytes(path);
  if (absl::IsNotFound(size.status())) return 0;
  return size;
}

// Returns DATA_LOSS if the database is absent although other parts of its store exist. Must be
// called before the database is opened.
absl::Status RefuseLostDatabase(const std::string& database_path, FileBlobs* blobs,
                                FileSystem* file_system) {
  PHIMAP_ASSIGN_OR_RETURN(const int64_t size_bytes, SizeOrZero(database_path, file_system));
  if (size_bytes > 0) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(const int64_t log_bytes,
                          SizeOrZero(absl::StrCat(database_path, "-wal"), file_system));
  PHIMAP_ASSIGN_OR_RETURN(const std::optional<std::string> marker, ReadMarker(*blobs, file_system));
  PHIMAP_ASSIGN_OR_RETURN(const bool has_blobs, blobs->HasBlobs());
  if (log_bytes == 0 && !marker.has_value() && !has_blobs) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kDataLoss, reason::kDatabaseLost, "",
      absl::StrCat(database_path, " is missing or empty although ",
                   log_bytes > 0 ? absl::StrCat(database_path, "-wal") : blobs->blobs_path(),
                   " belongs to a store; restore the database from a backup, or move everything "
                   "out of the data directory to start anew; nothing was removed"),
      {{"path", database_path}});
}

// Returns DATA_LOSS unless blobs and database belong together. Writes blobs/STORE in a fresh
// directory. Must be called before anything is removed.
absl::Status ConfirmIdentity(FileBlobs* blobs, FileSystem* file_system, SqlDatabase& database) {
  std::string store_id;
  bool has_mappings = false;
  PHIMAP_RETURN_IF_ERROR(database.Read([&](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(const SqlRows store, session.Run("SELECT store_id FROM store"));
    PHIMAP_ASSIGN_OR_RETURN(const SqlRows mapping, session.Run("SELECT 1 FROM mappings LIMIT 1"));
    store_id = store.Text(0, 0);
    has_mappings = !mapping.empty();
    return absl::OkStatus();
  }));
  PHIMAP_ASSIGN_OR_RETURN(const std::optional<std::string> marker, ReadMarker(*blobs, file_system));
  if (marker == store_id) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(const bool has_blobs, blobs->HasBlobs());
  if (!marker.has_value() && !has_blobs && !has_mappings) {
    return blobs->WriteNamed(kMarkerName, store_id);
  }
  return MakeError(
      absl::StatusCode::kDataLoss, reason::kStoreMismatch, "",
      absl::StrCat(
          "the database belongs to store ", store_id, ", but ", blobs->blobs_path(), "/",
          kMarkerName, " contains ", marker.value_or("nothing"),
          "; restore the database and the blobs from the same backup; nothing was removed"),
      {{"path", blobs->blobs_path()}, {"expected", store_id}, {"actual", marker.value_or("")}});
}

constexpr char kDatabaseName[] = "phimap.sqlite";

// Returns the directory that contains `path`.
std::string ParentOf(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

// Syncs the directory's own entry in its parent. The parent may be inaccessible, as /var/lib is for
// a hardened service.
absl::Status SyncEntryOf(const std::string& data_dir, FileSystem* file_system) {
  const absl::Status synced = file_system->SyncDir(ParentOf(data_dir));
  return absl::IsFailedPrecondition(synced) ? file_system->SyncFileSystem(data_dir) : synced;
}

absl::StatusOr<std::unique_ptr<FileLock>> LockDirectory(const std::string& data_dir,
                                                        FileSystem* file_system, FileBlobs& blobs) {
  PHIMAP_RETURN_IF_ERROR(file_system->CreateDir(data_dir));
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock,
                          file_system->Lock(absl::StrCat(data_dir, "/lock")));
  PHIMAP_RETURN_IF_ERROR(SyncEntryOf(data_dir, file_system));
  PHIMAP_RETURN_IF_ERROR(blobs.CreateDirectories());
  return lock;
}

absl::StatusOr<std::shared_ptr<SqlDatabase>> OpenDatabase(const SqliteStoreOptions& options,
                                                          FileSystem* file_system,
                                                          FileBlobs& blobs) {
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock,
                          LockDirectory(options.data_dir, file_system, blobs));
  const std::string path = absl::StrCat(options.data_dir, "/", kDatabaseName);
  PHIMAP_RETURN_IF_ERROR(RefuseLostDatabase(path, &blobs, file_system));
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> database,
                          SqliteDatabase::Open(path, options.busy_timeout));
  database->Keep(std::move(lock));
  // Syncs the database's own directory entry; SQLite syncs the entries of its logs.
  PHIMAP_RETURN_IF_ERROR(file_system->SyncDir(options.data_dir));
  return std::shared_ptr<SqlDatabase>(std::move(database));
}

absl::StatusOr<StartupReport> Tidy(FileSystem* file_system, FileBlobs& blobs, Store& store) {
  StartupReport report;
  // Creates and removes a file, to check that the directory is writable, even on a full disk.
  const std::string probe = absl::StrCat(blobs.temporary_path(), "/writable");
  const absl::Status created = file_system->NewWritableFile(probe).status();
  // A start that crashed here may have left the file behind.
  if (!absl::IsAlreadyExists(created)) PHIMAP_RETURN_IF_ERROR(created);
  PHIMAP_RETURN_IF_ERROR(file_system->Remove(probe));
  const absl::StatusOr<int64_t> pruned = store.Prune();
  // The server can serve with a full disk. Expired builds are not shown in any case.
  if (absl::IsResourceExhausted(pruned.status())) return report;
  PHIMAP_RETURN_IF_ERROR(pruned.status());
  report.removed_builds = *pruned;
  return report;
}

absl::Status Fill(FileSystem& file_system, const std::string& path, int64_t bytes) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                          file_system.NewWritableFile(path));
  // Writes real bytes, so that blocks are allocated, and syncs them, because some file systems
  // allocate blocks only then.
  PHIMAP_RETURN_IF_ERROR(file->Append(std::string(static_cast<size_t>(bytes), 'r')));
  PHIMAP_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const SqliteStoreOptions& options,
                                                               FileSystem* file_system) {
  const auto blobs = std::make_shared<FileBlobs>(options.data_dir, file_system);
  PHIMAP_ASSIGN_OR_RETURN(std::shared_ptr<SqlDatabase> database,
                          OpenDatabase(options, file_system, *blobs));
  PHIMAP_RETURN_IF_ERROR(ConfirmIdentity(blobs.get(), file_system, *database));
  DiskReserve reserve(absl::StrCat(options.data_dir, "/reserve"), options.reserve_bytes,
                      file_system);
  auto store = absl::WrapUnique(new SqliteStore(std::move(database), blobs,
                                                std::make_shared<StoreClock>(options.steady),
                                                std::move(reserve)));
  PHIMAP_ASSIGN_OR_RETURN(store->startup_report_, Tidy(file_system, *blobs, *store));
  return store;
}

void DiskReserve::Make() {
  if (bytes_ == 0) return;
  const absl::StatusOr<int64_t> there = file_system_->SizeBytes(path_);
  if (there.ok() && *there >= bytes_) return;
  file_system_->Remove(path_).IgnoreError();
  if (!Fill(*file_system_, path_, bytes_).ok()) file_system_->Remove(path_).IgnoreError();
}

absl::Status SqliteStore::Delete(absl::FunctionRef<absl::Status()> remove) {
  absl::Status removed = remove();
  if (!absl::IsResourceExhausted(removed) || !reserve_.GiveUp()) return removed;
  removed = remove();
  if (removed.ok()) {
    // The next collector finds artifacts that are not removed now.
    GarbageCollector(database(), blobs(), "a deletion on a full disk", clock())
        .Run(absl::ZeroDuration())
        .status()
        .IgnoreError();
  }
  reserve_.Make();
  return removed;
}

}  // namespace phimap
