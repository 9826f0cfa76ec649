// Prevents garbage collection of a store while it is copied.
#ifndef PHIMAP_SERVER_ADMIN_STORE_HOLD_H_
#define PHIMAP_SERVER_ADMIN_STORE_HOLD_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/sql_database.h"
#include "server/sync/steady_time.h"

namespace phimap {

// A hold is in force from Take until it is destroyed, as long as it is renewed. The hold of a
// program that was killed expires by itself. Not thread-safe. All methods return errors of the
// database.
class StoreHold {
 public:
  static constexpr absl::Duration kLifetime = absl::Minutes(10);

  // Takes a hold. `holder` describes this program, for people.
  static absl::StatusOr<std::unique_ptr<StoreHold>> Take(std::shared_ptr<SqlDatabase> database,
                                                         std::string holder);
  ~StoreHold();
  StoreHold(const StoreHold&) = delete;
  StoreHold& operator=(const StoreHold&) = delete;

  // Renews the hold. Must be called at least once within every kLifetime; writes at most once a
  // minute. FAILED_PRECONDITION (HOLD_LOST) if the hold has already expired: the copy may be
  // incomplete.
  absl::Status Renew();

 private:
  StoreHold(std::shared_ptr<SqlDatabase> database, std::string id, std::string holder)
      : database_(std::move(database)), id_(std::move(id)), holder_(std::move(holder)) {}

  const std::shared_ptr<SqlDatabase> database_;
  const std::string id_;
  const std::string holder_;
  absl::Time renewed_ = SteadyNow();
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMIN_STORE_HOLD_H_
