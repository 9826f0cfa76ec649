// A SQLite VFS on top of the default one that records writes, syncs, truncations and deletions, and
// fails them as planned.
#ifndef PHIMAP_TESTS_SERVER_STORE_SQLITE_FAULTY_VFS_H_
#define PHIMAP_TESTS_SERVER_STORE_SQLITE_FAULTY_VFS_H_

#include "tests/server/store/sqlite/fault_plan.h"

namespace phimap {

// Makes new connections use the faulty VFS for as long as the object lives. There may be only one
// object at a time, and it must outlive the last connection.
class ScopedFaultyVfs {
 public:
  explicit ScopedFaultyVfs(FaultPlan* plan);
  ~ScopedFaultyVfs();
  ScopedFaultyVfs(const ScopedFaultyVfs&) = delete;
  ScopedFaultyVfs& operator=(const ScopedFaultyVfs&) = delete;
};

}  // namespace phimap

#endif  // PHIMAP_TESTS_SERVER_STORE_SQLITE_FAULTY_VFS_H_
