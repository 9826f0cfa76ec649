// The list of a backup's contents: the file MANIFEST, written last. It has the format of sha256sum,
// so that `sha256sum --check MANIFEST` also checks the backup.
#ifndef PHIMAP_SERVER_STORE_ADMIN_BACKUP_MANIFEST_H_
#define PHIMAP_SERVER_STORE_ADMIN_BACKUP_MANIFEST_H_

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/files/file_system.h"

namespace phimap {

inline constexpr absl::string_view kManifestFile = "MANIFEST";

// A file that a backup contains if damaged artifacts were left out of it. It lists their digests,
// one per line.
inline constexpr absl::string_view kDamagedFile = "damaged.txt";

// Maps paths within the backup, such as "blobs/ab/abcdef…", to digests.
using BackupManifest = std::map<std::string, std::string>;

absl::Status WriteManifest(const std::string& folder, const BackupManifest& manifest,
                           FileSystem* file_system);
// Reads MANIFEST. Returns FAILED_PRECONDITION (BACKUP_NOT_FOUND) if there is no complete backup.
absl::StatusOr<BackupManifest> ReadManifest(const std::string& folder, FileSystem* file_system);

// Returns the SHA-256 of a file, which is read in pieces.
absl::StatusOr<std::string> FileDigest(const std::string& path, FileSystem* file_system);

// Returns DATA_LOSS (BACKUP_DAMAGED), naming the file, unless every file exists and matches its
// digest. Calls `step` before each file, and returns CANCELLED if `step` returns false.
absl::Status CheckBackup(const std::string& folder, const BackupManifest& manifest,
                         FileSystem* file_system, const std::function<bool()>& step);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_ADMIN_BACKUP_MANIFEST_H_
