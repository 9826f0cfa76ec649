// Removes artifacts some time after the last version that referred to them was deleted.
//
// A deletion adds the artifacts that no version refers to any longer to the table `unreferenced`
// (catalog_tables.h). Run also adds unreferenced artifacts that crashes and failed publishes have
// left behind. A blob is removed if it has been in the table for longer than a grace time and was
// not written within that time. Each removal is one transaction, which checks these conditions
// again. No blob that is needed is removed, for these reasons:
//
//   1. Transactions that write run one after another, across all processes. A transaction that
//      refers to an artifact takes it out of the table and checks that its blob exists. If it does
//      not exist, the publisher writes it again (Store). So no version is ever committed
//      without its artifact.
//   2. A loader that has looked up a version reads its artifact within the grace time. So an
//      artifact that was deleted since the look-up is still there.
//   3. A hold, such as that of a backup in progress, keeps every artifact in the table.
//   4. A blob that is being written was changed, or consists of parts that were changed, within the
//      grace time.
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
#include "server/store/store_clock.h"

namespace phimap {

struct GarbageReport {
  // The holder of the maintenance lease, if it is another server. In that case nothing was done.
  std::string busy_holder = {};
  // Number of unreferenced artifacts that were found and added to the table.
  int64_t listed = 0;
  int64_t removed = 0;
  // Number of files that were unlinked: parts of interrupted writes, and blobs that were removed a
  // grace time ago.
  int64_t remains = 0;
  // Number of artifacts that are old enough to be removed, but are kept because of a hold.
  int64_t held = 0;
};

// Thread-safe, blocking. Errors: those of SqlDatabase and Blobs. Steps that were finished before an
// error stay done.
class GarbageCollector {
 public:
  static constexpr absl::Duration kDefaultGrace = absl::Hours(1);

  // `holder` distinguishes this collector from others, as in "phimapd 4711 on host".
  GarbageCollector(std::shared_ptr<SqlDatabase> database, std::shared_ptr<Blobs> blobs,
                   std::string holder,
                   std::shared_ptr<StoreClock> clock = std::make_shared<StoreClock>())
      : database_(std::move(database)),
        blobs_(std::move(blobs)),
        holder_(std::move(holder)),
        clock_(std::move(clock)) {}

  // Makes one pass. Removes nothing while the clock is not trusted, unless the grace time is zero.
  // If the grace time is zero (on a full disk), files are unlinked at once; reasons 2 and 4 then do
  // not apply, and loaders and writers must try again.
  absl::StatusOr<GarbageReport> Run(absl::Duration grace);

 private:
  // Work found by Look.
  struct Work {
    absl::Time now;
    std::vector<std::string> unlisted;
    // Artifacts that have been listed for longer than the grace time.
    std::vector<std::string> old;
  };
  absl::StatusOr<Work> Look(absl::Duration grace);
  absl::Status Do(const Work& work, absl::Duration grace, GarbageReport* report);
  // Takes the lease. Returns its holder if that is another collector, and otherwise an empty
  // string.
  absl::StatusOr<std::string> TakeLease();
  absl::Status ReturnLease();
  absl::Status List(const std::vector<std::string>& digests);
  absl::Status RemoveOne(absl::string_view digest, absl::Duration grace, GarbageReport* report);

  const std::shared_ptr<SqlDatabase> database_;
  const std::shared_ptr<Blobs> blobs_;
  const std::string holder_;
  const std::shared_ptr<StoreClock> clock_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_GARBAGE_COLLECTOR_H_
