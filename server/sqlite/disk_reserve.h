// A file that is deleted when the disk is full, so that there is enough space for a deletion of
// versions, which frees more space.
#ifndef PHIMAP_SERVER_SQLITE_DISK_RESERVE_H_
#define PHIMAP_SERVER_SQLITE_DISK_RESERVE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "server/files/file_system.h"

namespace phimap {

// Several DiskReserves may share the file. Thread-safe.
class DiskReserve {
 public:
  // `file_system` must outlive this object. With 0 bytes there is no reserve.
  DiskReserve(std::string path, int64_t bytes, FileSystem* file_system)
      : path_(std::move(path)), bytes_(bytes), file_system_(file_system) {}

  // Writes the file unless it is complete. If the disk has too little space, leaves no file.
  void Make();
  // Deletes the file. Returns whether that succeeded.
  bool GiveUp() { return file_system_->Remove(path_).ok(); }

 private:
  const std::string path_;
  const int64_t bytes_;
  FileSystem* const file_system_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SQLITE_DISK_RESERVE_H_
