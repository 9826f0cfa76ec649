// A file that is given up when the disk is full, so that there is space for the deletion that frees
// more.
#ifndef PHIMAP_SERVER_SQLITE_DISK_RESERVE_H_
#define PHIMAP_SERVER_SQLITE_DISK_RESERVE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "server/files/file_system.h"

namespace phimap {

// Several may share the file. Thread-safe.
class DiskReserve {
 public:
  // `file_system` outlives it. With 0 bytes there is no reserve.
  DiskReserve(std::string path, int64_t bytes, FileSystem* file_system)
      : path_(std::move(path)), bytes_(bytes), file_system_(file_system) {}

  // Writes the file unless it is complete. If the disk has too little space, leaves no file.
  void Make();
  // Whether there was one.
  bool GiveUp() { return file_system_->Remove(path_).ok(); }

 private:
  const std::string path_;
  const int64_t bytes_;
  FileSystem* const file_system_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SQLITE_DISK_RESERVE_H_
