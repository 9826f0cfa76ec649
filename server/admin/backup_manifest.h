// Contents of a backup: the file MANIFEST, written last, in the format of sha256sum, so that
// `sha256sum --check MANIFEST` checks a backup as well.
#ifndef PHIMAP_SERVER_ADMIN_BACKUP_MANIFEST_H_
#define PHIMAP_SERVER_ADMIN_BACKUP_MANIFEST_H_

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/files/file_system.h"

namespace phimap {

inline constexpr absl::string_view kManifestFile = "MANIFEST";

// In a backup that was made without damaged artifacts: their digests, a line each.
inline constexpr absl::string_view kDamagedFile = "damaged.txt";

// Digests by path within the backup, as in "blobs/ab/abcdef…".
using BackupManifest = std::map<std::string, std::string>;

absl::Status WriteManifest(const std::string& folder, const BackupManifest& manifest,
                           FileSystem* file_system);
// FAILED_PRECONDITION (BACKUP_NOT_FOUND) if there is no complete backup.
absl::StatusOr<BackupManifest> ReadManifest(const std::string& folder, FileSystem* file_system);

// The SHA-256 of a file, read in pieces.
absl::StatusOr<std::string> FileDigest(const std::string& path, FileSystem* file_system);

// DATA_LOSS (BACKUP_DAMAGED), naming the file, unless each is there with its digest. `step` is
// called before each file; false stops (CANCELLED).
absl::Status CheckBackup(const std::string& folder, const BackupManifest& manifest,
                         FileSystem* file_system, const std::function<bool()>& step);

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMIN_BACKUP_MANIFEST_H_
