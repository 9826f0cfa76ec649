#include "server/sqlite/store_directory.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

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

}  // namespace

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
      absl::StatusCode::kDataLoss, "DATABASE_LOST", "",
      absl::StrCat(database_path, " is missing or empty although ",
                   log_bytes > 0 ? absl::StrCat(database_path, "-wal") : blobs->blobs_path(),
                   " belongs to a store; restore the database from a backup, or move everything "
                   "out of the data directory to start anew; nothing was removed"),
      {{"path", database_path}});
}

absl::Status ConfirmIdentity(FileBlobs* blobs, FileSystem* file_system, SqlCatalog* catalog) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string store_id, catalog->StoreId());
  PHIMAP_ASSIGN_OR_RETURN(const std::optional<std::string> marker, ReadMarker(*blobs, file_system));
  if (marker == store_id) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(const bool has_blobs, blobs->HasBlobs());
  PHIMAP_ASSIGN_OR_RETURN(const bool has_mappings, catalog->HasMappings());
  if (!marker.has_value() && !has_blobs && !has_mappings) {
    return blobs->WriteNamed(kMarkerName, store_id);
  }
  return MakeError(
      absl::StatusCode::kDataLoss, "STORE_MISMATCH", "",
      absl::StrCat(
          "the database belongs to store ", store_id, ", but ", blobs->blobs_path(), "/",
          kMarkerName, " contains ", marker.value_or("nothing"),
          "; restore the database and the blobs from the same backup; nothing was removed"),
      {{"path", blobs->blobs_path()}, {"expected", store_id}, {"actual", marker.value_or("")}});
}

}  // namespace phimap
