// The clock of a store: the database's, which is the same for every server. Only this clock decides
// when versions, builds, claims and operations end.
#ifndef PHIMAP_SERVER_STORE_STORE_CLOCK_H_
#define PHIMAP_SERVER_STORE_STORE_CLOCK_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/thread/mutex.h"
#include "core/thread/steady_time.h"
#include "server/store/sql_database.h"

namespace phimap {

// Compares the database's clock with this process's monotonic one at each look. If the database's
// moved more than kLargestJump further than the other one between two looks, somebody set it, or it
// is now another machine's. What ends by such a clock may not have ended, so nothing is ended by it
// for kDistrust. Thread-safe. One object serves all users of a database in a process.
class StoreClock {
 public:
  static constexpr absl::Duration kLargestJump = absl::Seconds(60);
  static constexpr absl::Duration kDistrust = absl::Hours(1);

  using Steady = std::function<absl::Time()>;

  explicit StoreClock(Steady steady = [] { return SteadyNow(); }) : steady_(std::move(steady)) {}

  // Looks at the database's clock; the result is in whole microseconds. Errors: those of the
  // database.
  absl::StatusOr<absl::Time> Now(SqlSession& session) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns false for kDistrust after a jump. Then nothing may be deleted or taken over because its
  // time has ended.
  bool trusted() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Number of jumps since the start.
  int64_t jumps() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Look {
    absl::Time time;
    absl::Time at;
  };

  void Note(absl::Time time) ABSL_LOCKS_EXCLUDED(mutex_);

  const Steady steady_;
  mutable Mutex mutex_;
  std::optional<Look> last_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Time> jumped_at_ ABSL_GUARDED_BY(mutex_);
  int64_t jumps_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_STORE_CLOCK_H_
