// Removes artifacts that no version names, long after the last one that did.
//
// A deletion lists the artifacts that it leaves unnamed in `unreferenced` (catalog_tables.h). Run
// finds unnamed artifacts that are not listed, left by crashes and by publishes that failed, and
// lists them too. A blob that has been listed for longer than a grace time, and was not written
// within it, is removed, each in one transaction that looks again. The reasons why no needed blob
// is removed:
//
//   1. Transactions that write follow one another, across all processes. One that names an artifact
//   takes it off the list and asks whether its blob is there; if it is not, its publisher writes it
//   again (CatalogStore). So no version is ever committed without its artifact.
//   2. A loader that looked a version up reads within the grace time: an artifact deleted since is
//   still there.
//   3. Holds (a backup under way) keep everything that is listed.
//   4. A blob being written is fresh, or in parts that were touched within the grace time.
//
// The maintenance lease only saves work: two collectors at once would do no harm.
#ifndef PHIMAP_SERVER_STORE_GARBAGE_COLLECTOR_H_
#define PHIMAP_SERVER_STORE_GARBAGE_COLLECTOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/blobs.h"
#include "server/store/sql_database.h"

namespace phimap {

struct GarbageReport {
  // Holder of the maintenance lease if it is another server; nothing was done then.
  std::string busy_holder = {};
  // Found without a version and listed now.
  int64_t listed = 0;
  int64_t removed = 0;
  // Parts of interrupted writes, and files that were removed a grace time ago, unlinked.
  int64_t remains = 0;
  // Old enough, kept because of a hold.
  int64_t held = 0;
};

// Thread-safe, blocking. Errors: those of SqlDatabase and Blobs; finished steps stay done.
class GarbageCollector {
 public:
  static constexpr absl::Duration kDefaultGrace = absl::Hours(1);

  // `holder` tells this collector from others, as in "phimapd 4711 on host".
  GarbageCollector(std::shared_ptr<SqlDatabase> database, std::shared_ptr<Blobs> blobs,
                   std::string holder)
      : database_(std::move(database)), blobs_(std::move(blobs)), holder_(std::move(holder)) {}

  // One pass. With no grace time (a full disk) files are unlinked at once; then 2. and 4. hold only
  // as far as loaders and writers try again.
  absl::StatusOr<GarbageReport> Run(absl::Duration grace);

 private:
  // Work found by a look at rows and blobs.
  struct Work {
    absl::Time now;
    std::vector<std::string> unlisted;
    // Listed for longer than the grace time.
    std::vector<std::string> old;
  };
  absl::StatusOr<Work> Look(absl::Duration grace);
  absl::Status Do(const Work& work, absl::Duration grace, GarbageReport* report);
  // Empty, or the holder of the lease.
  absl::StatusOr<std::string> TakeLease();
  absl::Status ReturnLease();
  absl::Status List(const std::vector<std::string>& digests);
  absl::Status RemoveOne(absl::string_view digest, absl::Duration grace, GarbageReport* report);

  const std::shared_ptr<SqlDatabase> database_;
  const std::shared_ptr<Blobs> blobs_;
  const std::string holder_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_GARBAGE_COLLECTOR_H_
