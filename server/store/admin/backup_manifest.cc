#include "server/store/admin/backup_manifest.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/digest/sha256.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/sha256.h"

namespace phimap {
namespace {

// About 100 bytes per artifact, so a hundred million artifacts.
constexpr int64_t kManifestLimitBytes = int64_t{10} << 30;
constexpr int64_t kDigestPieceBytes = int64_t{1} << 20;

absl::Status NoBackup(const std::string& folder, absl::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kBackupNotFound, "from",
                   absl::StrCat(folder, " is not a complete backup: ", why,
                                "; `phimapd admin backup` writes that file last, so the backup was "
                                "interrupted, or this is not a backup"),
                   {{"path", folder}});
}

absl::Status Damaged(const std::string& path, absl::string_view what) {
  return MakeError(absl::StatusCode::kDataLoss, reason::kBackupDamaged, "from",
                   absl::StrCat(path, " ", what, "; nothing was restored: use another backup"),
                   {{"path", path}});
}

}  // namespace

absl::Status WriteManifest(const std::string& folder, const BackupManifest& manifest,
                           FileSystem* file_system) {
  std::string text;
  for (const auto& [path, digest] : manifest) absl::StrAppend(&text, digest, "  ", path, "\n");
  const std::string path = absl::StrCat(folder, "/", kManifestFile);
  const std::string part = absl::StrCat(path, ".part");
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                          file_system->NewWritableFile(part));
  PHIMAP_RETURN_IF_ERROR(file->Append(text));
  PHIMAP_RETURN_IF_ERROR(file->Sync());
  PHIMAP_RETURN_IF_ERROR(file->Close());
  PHIMAP_RETURN_IF_ERROR(file_system->Rename(part, path));
  return file_system->SyncDir(folder);
}

absl::StatusOr<BackupManifest> ReadManifest(const std::string& folder, FileSystem* file_system) {
  const std::string path = absl::StrCat(folder, "/", kManifestFile);
  absl::StatusOr<std::string> text = file_system->ReadFile(path, kManifestLimitBytes);
  if (absl::IsNotFound(text.status())) return NoBackup(folder, "it has no MANIFEST");
  PHIMAP_RETURN_IF_ERROR(text.status());
  BackupManifest manifest;
  std::vector<absl::string_view> lines = absl::StrSplit(*text, '\n');
  if (!lines.back().empty()) return NoBackup(folder, "its MANIFEST ends in the middle of a line");
  lines.pop_back();
  for (const absl::string_view line : lines) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits("  ", 1));
    if (!IsSha256Hex(parts.first) || parts.second.empty()) {
      return NoBackup(folder, absl::StrCat("its MANIFEST has the line \"", line, "\""));
    }
    manifest.emplace(parts.second, parts.first);
  }
  return manifest;
}

absl::StatusOr<std::string> FileDigest(const std::string& path, FileSystem* file_system) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file,
                          file_system->NewReadableFile(path));
  Sha256 hash;
  for (;;) {
    PHIMAP_ASSIGN_OR_RETURN(const std::string piece, file->Read(kDigestPieceBytes));
    if (piece.empty()) return hash.Hex();
    hash.Update(piece);
  }
}

absl::Status CheckBackup(const std::string& folder, const BackupManifest& manifest,
                         FileSystem* file_system, const std::function<bool()>& step) {
  for (const auto& [name, expected] : manifest) {
    if (!step()) return absl::CancelledError("the restore was cancelled; nothing was restored");
    const std::string path = absl::StrCat(folder, "/", name);
    const absl::StatusOr<std::string> actual = FileDigest(path, file_system);
    if (absl::IsNotFound(actual.status())) return Damaged(path, "is missing");
    PHIMAP_RETURN_IF_ERROR(actual.status());
    if (*actual != expected) return Damaged(path, absl::StrCat("has SHA-256 ", *actual));
  }
  return absl::OkStatus();
}

}  // namespace phimap
