#include "server/admin/store_backup.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/admin/backup_manifest.h"
#include "server/admin/catalog_rows.h"
#include "server/admin/store_hold.h"
#include "server/files/file_blobs.h"
#include "server/sqlite/sqlite_database.h"

namespace phimap {
namespace {

constexpr char kAliasesFile[] = "aliases.txt";

std::string BlobName(absl::string_view digest) {
  return absl::StrCat("blobs/", digest.substr(0, 2), "/", digest);
}

// Returns a line per alias with NAME@ALIAS, version number and digest, for people and for restoring
// by hand.
std::string AliasesText(const CatalogRows& rows) {
  const SqlRows& versions = rows.tables[1];
  const SqlRows& aliases = rows.tables[2];
  std::map<std::pair<std::string, int64_t>, std::string> digests;
  for (size_t i = 0; i < versions.size(); ++i) {
    digests[{versions.Text(i, 0), versions.Int(i, 1)}] = versions.Text(i, 2);
  }
  std::string text;
  for (size_t i = 0; i < aliases.size(); ++i) {
    absl::StrAppend(&text, aliases.Text(i, 0), "@", aliases.Text(i, 1), "\t", aliases.Int(i, 2),
                    "\t", digests[{aliases.Text(i, 0), aliases.Int(i, 2)}], "\n");
  }
  return text;
}

absl::Status WriteText(const std::string& path, absl::string_view text, FileSystem* file_system) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                          file_system->NewWritableFile(path));
  PHIMAP_RETURN_IF_ERROR(file->Append(text));
  PHIMAP_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

absl::Status WriteDatabase(const std::string& path, const CatalogRows& rows) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteDatabase> database,
                          SqliteDatabase::Open(path, kAdminBusyTimeout));
  PHIMAP_RETURN_IF_ERROR(
      database->Write([&](SqlSession& session) { return WriteCatalogRows(session, rows); },
                      [](SqlSession&) { return false; }, "the backup's tables were written"));
  return database->EmptyLog();
}

absl::Status SomeDamaged(const std::vector<std::string>& messages) {
  return MakeError(
      absl::StatusCode::kDataLoss, "ARTIFACT_DAMAGED", "store",
      absl::StrCat(messages.size(), " artifacts could not be copied, so the backup is incomplete: ",
                   absl::StrJoin(messages, "; "),
                   "; repair them (`phimapd admin check` lists the versions that use them), or "
                   "make a backup "
                   "without them with --skip-damaged"));
}

class Backup {
 public:
  Backup(const AdminStore& from, std::string folder, FileSystem* file_system,
         const AdminProgress& progress, bool skip_damaged)
      : from_(from),
        folder_(std::move(folder)),
        file_system_(file_system),
        progress_(progress),
        skip_damaged_(skip_damaged),
        to_(folder_, file_system) {}

  absl::StatusOr<BackupReport> Run(StoreHold& hold) {
    CatalogRows rows;
    std::map<std::string, int64_t> artifacts;
    PHIMAP_RETURN_IF_ERROR(from_.database->Read([&](SqlSession& session) -> absl::Status {
      PHIMAP_ASSIGN_OR_RETURN(rows, ReadCatalogRows(session));
      PHIMAP_ASSIGN_OR_RETURN(artifacts, NamedArtifacts(session));
      return absl::OkStatus();
    }));
    PHIMAP_RETURN_IF_ERROR(file_system_->CreateDir(folder_));
    PHIMAP_RETURN_IF_ERROR(to_.CreateDirectories());
    PHIMAP_RETURN_IF_ERROR(CopyArtifacts(artifacts, hold));
    PHIMAP_RETURN_IF_ERROR(WriteRest(rows));
    report_.mappings = static_cast<int64_t>(rows.tables[0].size());
    report_.versions = static_cast<int64_t>(rows.tables[1].size());
    report_.aliases = static_cast<int64_t>(rows.tables[2].size());
    report_.revision = rows.revision;
    return report_;
  }

 private:
  absl::Status CopyArtifacts(const std::map<std::string, int64_t>& artifacts, StoreHold& hold) {
    for (const auto& [digest, size_bytes] : artifacts) {
      if (!progress_(report_.artifacts, static_cast<int64_t>(artifacts.size()))) {
        return absl::CancelledError(absl::StrCat("the backup was cancelled; ", folder_,
                                                 " has no MANIFEST and is not a backup"));
      }
      PHIMAP_RETURN_IF_ERROR(hold.Renew());
      const absl::Status copied = CopyArtifact(digest, size_bytes);
      if (absl::IsDataLoss(copied)) {
        report_.damaged.push_back(std::string(copied.message()));
        absl::StrAppend(&damaged_text_, digest, "\n");
        continue;
      }
      PHIMAP_RETURN_IF_ERROR(copied);
      manifest_[BlobName(digest)] = digest;
      ++report_.artifacts;
      report_.bytes += size_bytes;
    }
    if (report_.damaged.empty() || skip_damaged_) return absl::OkStatus();
    return SomeDamaged(report_.damaged);
  }

  absl::Status CopyArtifact(const std::string& digest, int64_t size_bytes) {
    PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactReader> reader,
                            from_.blobs->OpenReader(digest, size_bytes));
    return to_.WriteFrom(digest, *reader);
  }

  absl::Status WriteRest(const CatalogRows& rows) {
    PHIMAP_RETURN_IF_ERROR(to_.WriteNamed("STORE", rows.store_id));
    PHIMAP_RETURN_IF_ERROR(WriteText(Path(kAliasesFile), AliasesText(rows), file_system_));
    if (!damaged_text_.empty()) {
      const std::string path = Path(kDamagedFile);
      PHIMAP_RETURN_IF_ERROR(WriteText(path, damaged_text_, file_system_));
      PHIMAP_ASSIGN_OR_RETURN(manifest_[std::string(kDamagedFile)], FileDigest(path, file_system_));
    }
    PHIMAP_RETURN_IF_ERROR(WriteDatabase(Path(kDatabaseFile), rows));
    PHIMAP_RETURN_IF_ERROR(file_system_->SyncFileSystem(folder_));
    for (const absl::string_view name :
         {absl::string_view("blobs/STORE"), absl::string_view(kAliasesFile), kDatabaseFile}) {
      PHIMAP_ASSIGN_OR_RETURN(manifest_[std::string(name)], FileDigest(Path(name), file_system_));
    }
    return WriteManifest(folder_, manifest_, file_system_);
  }

  std::string Path(absl::string_view name) const { return absl::StrCat(folder_, "/", name); }

  const AdminStore& from_;
  const std::string folder_;
  FileSystem* const file_system_;
  const AdminProgress& progress_;
  const bool skip_damaged_;
  FileBlobs to_;
  BackupManifest manifest_;
  // Digests of the artifacts that could not be copied, one per line.
  std::string damaged_text_;
  BackupReport report_;
};

}  // namespace

absl::Status CheckEmpty(const std::string& folder, absl::string_view field,
                        FileSystem* file_system) {
  const absl::StatusOr<std::vector<std::string>> names = file_system->List(folder);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  PHIMAP_RETURN_IF_ERROR(names.status());
  if (names->empty()) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kFailedPrecondition, "STORE_NOT_EMPTY", field,
      absl::StrCat("expected a folder that is missing or empty, but ", folder, " has ",
                   names->front(),
                   names->size() > 1 ? absl::StrCat(" and ", names->size() - 1, " more") : "",
                   "; choose another folder, or move these files away"),
      {{"path", absl::StrCat(folder, "/", names->front())}});
}

absl::StatusOr<BackupReport> BackUp(const AdminStore& from, const std::string& folder,
                                    const std::string& holder, FileSystem* file_system,
                                    const AdminProgress& progress, bool skip_damaged) {
  PHIMAP_RETURN_IF_ERROR(CheckEmpty(folder, "--to", file_system));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<StoreHold> hold,
                          StoreHold::Take(from.database, holder));
  return Backup(from, folder, file_system, progress, skip_damaged).Run(*hold);
}

}  // namespace phimap
