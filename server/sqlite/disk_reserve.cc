#include "server/sqlite/disk_reserve.h"

#include <memory>

#include "core/status/status_macros.h"

namespace phimap {
namespace {

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

void DiskReserve::Make() {
  if (bytes_ == 0) return;
  const absl::StatusOr<int64_t> there = file_system_->SizeBytes(path_);
  if (there.ok() && *there >= bytes_) return;
  file_system_->Remove(path_).IgnoreError();
  if (!Fill(*file_system_, path_, bytes_).ok()) file_system_->Remove(path_).IgnoreError();
}

}  // namespace phimap
