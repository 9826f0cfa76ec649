// Membership of this server in the fleet that shares a catalog. Reports that the server is alive,
// and which formats it can read.
//
// Artifacts of a new format, or of new arithmetic, are written only when every live server can read
// them (store.cc). Otherwise an upgrade in progress would publish versions that servers of the
// old release cannot serve.
#ifndef PHIMAP_SERVER_STORE_FLEET_MEMBER_H_
#define PHIMAP_SERVER_STORE_FLEET_MEMBER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/thread/mutex.h"
#include "server/store/sql_database.h"

namespace phimap {

// Facts about a server that other servers may read.
struct FleetServer {
  // NewServerId(), chosen when the process started.
  std::string id;
  // Where the server runs, for people.
  std::string name;
  std::string release;
  // The newest versions that the server can read.
  int64_t schema_version = 0;
  int64_t artifact_format = 0;
  int64_t arithmetic = 0;
};

// Returns a new id for a server process: 16 random hexadecimal digits.
std::string NewServerId();

class FleetMember {
 public:
  // Time without a report after which a server counts as dead, by the database's clock.
  static constexpr absl::Duration kLifetime = absl::Seconds(30);

  static constexpr absl::Duration kPeriod = absl::Seconds(5);

  // Reports that `server` is alive, now and every `period` from its own thread, and calls
  // `each_time` after each report. While the database is away, tries again. Errors: those of the
  // database, except UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<FleetMember>> Join(
      std::shared_ptr<SqlDatabase> database, FleetServer server, absl::Duration period = kPeriod,
      std::function<void()> each_time = [] {});
  // Reports the end of the server, if the database can be reached.
  ~FleetMember();
  FleetMember(const FleetMember&) = delete;
  FleetMember& operator=(const FleetMember&) = delete;

  const FleetServer& server() const { return server_; }

 private:
  FleetMember(std::shared_ptr<SqlDatabase> database, FleetServer server, absl::Duration period,
              std::function<void()> each_time)
      : database_(std::move(database)),
        server_(std::move(server)),
        period_(period),
        each_time_(std::move(each_time)) {}

  absl::Status Beat();
  void Run();

  const std::shared_ptr<SqlDatabase> database_;
  const FleetServer server_;
  const absl::Duration period_;
  const std::function<void()> each_time_;

  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Returns OK if every live server can read artifacts of this format and arithmetic. Otherwise
// returns FAILED_PRECONDITION (FLEET_TOO_OLD) with the name of a server that cannot. To be called
// within the transaction that publishes such an artifact.
absl::Status CheckAllRead(SqlSession& session, int64_t artifact_format, int64_t arithmetic);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_FLEET_MEMBER_H_
