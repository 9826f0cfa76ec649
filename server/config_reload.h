// What SIGHUP does: it reads the configuration file again, and puts in force what needs no restart.
#ifndef PHIMAP_SERVER_CONFIG_RELOAD_H_
#define PHIMAP_SERVER_CONFIG_RELOAD_H_

#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "server/observe/log.h"
#include "server/options.h"
#include "server/server.h"

namespace phimap {

// Not thread-safe.
class ConfigReload {
 public:
  using Read = std::function<absl::StatusOr<Configuration>()>;

  // `in_force`: what the server was started with. `read` returns the configuration with the file as
  // it is now. `server` and `logger` must outlive this object.
  ConfigReload(Configuration in_force, Read read, Server& server, Logger& logger)
      : in_force_(std::move(in_force)), read_(std::move(read)), server_(server), logger_(logger) {}

  // Logs each setting that changed, and each that would change with a restart, at every call until
  // then. If the file cannot be used, changes nothing, and logs and counts that.
  void Run();

 private:
  void Apply(const Configuration& now);
  void LogChange(const Setting& before, const Setting& now) const;

  Configuration in_force_;
  const Read read_;
  Server& server_;
  Logger& logger_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_CONFIG_RELOAD_H_
