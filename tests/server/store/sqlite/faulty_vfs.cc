#include "tests/server/store/sqlite/faulty_vfs.h"

#include <sqlite3.h>

#include <cerrno>
#include <string>

#include "core/status/check.h"

namespace phimap {
namespace {

FaultPlan* g_plan = nullptr;
sqlite3_vfs* g_base = nullptr;
sqlite3_vfs g_vfs;

// A file of the faulty VFS. SQLite allocates szOsFile bytes for it. In these bytes, the file of the
// base VFS follows this struct.
struct FaultyFile {
  sqlite3_file base;
  const char* name;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

FaultyFile* Self(sqlite3_file* file) { return reinterpret_cast<FaultyFile*>(file); }
sqlite3_file* Real(sqlite3_file* file) { return Self(file)->real(); }

// The name without its directories. SQLite's temporary files have no path.
std::string BaseName(const char* path) {
  const std::string text = path == nullptr ? "temporary" : path;
  return text.substr(text.rfind('/') + 1);
}

template <typename Call>
int Run(const char* operation, const char* path, int io_error, Call call) {
  const Fault fault = g_plan->Step(std::string("sqlite ") + operation + " " + BaseName(path));
  if (fault == Fault::kNone) {
    const int result = call();
    if (result == SQLITE_OK && path != nullptr && g_plan->after) {
      g_plan->after(std::string("sqlite ") + operation, path);
    }
    return result;
  }
  if (fault == Fault::kErrorAfter) call();
  if (g_plan->error_number() == ENOSPC) return SQLITE_FULL;
  if (g_plan->error_number() == EROFS) return SQLITE_READONLY;
  return io_error;
}

int Close(sqlite3_file* file) { return Real(file)->pMethods->xClose(Real(file)); }
int Read(sqlite3_file* file, void* data, int size, sqlite3_int64 offset) {
  return Real(file)->pMethods->xRead(Real(file), data, size, offset);
}
int Write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  return Run("write", Self(file)->name, SQLITE_IOERR_WRITE,
             [&] { return Real(file)->pMethods->xWrite(Real(file), data, size, offset); });
}
int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  return Run("truncate", Self(file)->name, SQLITE_IOERR_TRUNCATE,
             [&] { return Real(file)->pMethods->xTruncate(Real(file), size); });
}
int Sync(sqlite3_file* file, int flags) {
  return Run("fsync", Self(file)->name, SQLITE_IOERR_FSYNC,
             [&] { return Real(file)->pMethods->xSync(Real(file), flags); });
}
int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  return Real(file)->pMethods->xFileSize(Real(file), size);
}
int Lock(sqlite3_file* file, int level) { return Real(file)->pMethods->xLock(Real(file), level); }
int Unlock(sqlite3_file* file, int level) {
  return Real(file)->pMethods->xUnlock(Real(file), level);
}
int CheckReservedLock(sqlite3_file* file, int* out) {
  return Real(file)->pMethods->xCheckReservedLock(Real(file), out);
}
int FileControl(sqlite3_file* file, int op, void* argument) {
  return Real(file)->pMethods->xFileControl(Real(file), op, argument);
}
int SectorSize(sqlite3_file* file) { return Real(file)->pMethods->xSectorSize(Real(file)); }
int DeviceCharacteristics(sqlite3_file* file) {
  return Real(file)->pMethods->xDeviceCharacteristics(Real(file));
}
int ShmMap(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
  return Real(file)->pMethods->xShmMap(Real(file), page, size, extend, out);
}
int ShmLock(sqlite3_file* file, int offset, int count, int flags) {
  return Real(file)->pMethods->xShmLock(Real(file), offset, count, flags);
}
void ShmBarrier(sqlite3_file* file) { Real(file)->pMethods->xShmBarrier(Real(file)); }
int ShmUnmap(sqlite3_file* file, int remove) {
  return Real(file)->pMethods->xShmUnmap(Real(file), remove);
}

// Version 2 of the methods includes shared memory for the write-ahead log, but not memory-mapped
// pages.
const sqlite3_io_methods kMethods = {2,
                                     Close,
                                     Read,
                                     Write,
                                     Truncate,
                                     Sync,
                                     FileSize,
                                     Lock,
                                     Unlock,
                                     CheckReservedLock,
                                     FileControl,
                                     SectorSize,
                                     DeviceCharacteristics,
                                     ShmMap,
                                     ShmLock,
                                     ShmBarrier,
                                     ShmUnmap,
                                     nullptr,
                                     nullptr};

int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  Self(file)->name = name;
  const int result = g_base->xOpen(g_base, name, Real(file), flags, out_flags);
  if (Real(file)->pMethods != nullptr) file->pMethods = &kMethods;
  return result;
}

int Delete(sqlite3_vfs*, const char* name, int sync_directory) {
  return Run("remove", name, SQLITE_IOERR_DELETE,
             [&] { return g_base->xDelete(g_base, name, sync_directory); });
}

}  // namespace

ScopedFaultyVfs::ScopedFaultyVfs(FaultPlan* plan) {
  PHIMAP_CHECK(g_plan == nullptr);
  g_plan = plan;
  g_base = sqlite3_vfs_find(nullptr);
  // The other methods of the base VFS can be copied, because they do not use the VFS object on
  // which they are called.
  g_vfs = *g_base;
  g_vfs.zName = "faulty";
  g_vfs.szOsFile = static_cast<int>(sizeof(FaultyFile)) + g_base->szOsFile;
  g_vfs.xOpen = Open;
  g_vfs.xDelete = Delete;
  PHIMAP_CHECK(sqlite3_vfs_register(&g_vfs, 1) == SQLITE_OK);
}

ScopedFaultyVfs::~ScopedFaultyVfs() {
  PHIMAP_CHECK(sqlite3_vfs_unregister(&g_vfs) == SQLITE_OK);
  PHIMAP_CHECK(sqlite3_vfs_register(g_base, 1) == SQLITE_OK);
  g_plan = nullptr;
}

}  // namespace phimap
