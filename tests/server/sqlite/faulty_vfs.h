// A SQLite VFS over the default one that records writes, syncs, truncations and deletions, and
// fails them as planned.
#ifndef PHIMAP_TESTS_SERVER_SQLITE_FAULTY_VFS_H_
#define PHIMAP_TESTS_SERVER_SQLITE_FAULTY_VFS_H_

#include "tests/server/sqlite/fault_plan.h"

namespace phimap {

// While it lives, connections that are opened use the faulty VFS. One at a time; destroy after the
// last connection.
class ScopedFaultyVfs {
 public:
  explicit ScopedFaultyVfs(FaultPlan* plan);
  ~ScopedFaultyVfs();
  ScopedFaultyVfs(const ScopedFaultyVfs&) = delete;
  ScopedFaultyVfs& operator=(const ScopedFaultyVfs&) = delete;
};

}  // namespace phimap

#endif  // PHIMAP_TESTS_SERVER_SQLITE_FAULTY_VFS_H_
