// The server, composed of store, registry, scheduler, builds, services and the two listeners.
//
// Example:
//   absl::StatusOr<std::unique_ptr<Server>> server =
//       Server::Start(options, std::move(store), logger);
//   Announce((*server)->grpc_address());
//   WaitForStopSignal();
//   (*server)->Shutdown(absl::Seconds(20));
#ifndef PHIMAP_SERVER_SERVER_H_
#define PHIMAP_SERVER_SERVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/drift/drift_watcher.h"
#include "server/observe/log.h"
#include "server/open_store.h"
#include "server/options.h"

namespace phimap {

class Server {
 public:
  // Replaces clocks and adds hooks, for tests.
  struct Hooks {
    std::function<absl::Time()> transform_clock;
    std::function<std::chrono::steady_clock::time_point()> build_clock;
    // If set, builds call this function instead of yielding to Transforms: on build threads, before
    // each tile and each block.
    std::function<void()> build_yield;
    // Called on the loader thread before it reads an artifact.
    std::function<void()> before_load;
    // How rows are sampled and tested for drift.
    std::optional<DriftWatcher::Limits> drift;
  };

  // Listens and serves. `logger` must outlive the server. Returns FAILED_PRECONDITION if an address
  // cannot be bound or a TLS or token file cannot be used, and INVALID_ARGUMENT if the path of a
  // socket is too long or a token file is malformed. REQUIRES: ParseOptions returned `options`.
  // (ParseOptions has rejected addresses that other machines can reach without protection, unless
  // --insecure is set.)
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       OpenedStore store, const Logger& logger,
                                                       Hooks hooks = {});
  // Shuts down without waiting, unless Shutdown was called before.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Returns the listening address, with port 0 replaced by the actual port.
  const std::string& grpc_address() const;
  // Returns the HTTP address, or an empty string if options.http is empty.
  const std::string& http_address() const;
  // Returns the address of the API over HTTP, or an empty string if options.api_http is empty.
  const std::string& api_http_address() const;

  // Reports NOT_SERVING to health checks, rejects new builds at once and new calls after the
  // lame-duck time, waits at most `drain_time` for the builds and calls in progress, and cancels
  // the rest. Blocking. Idempotent.
  void Shutdown(absl::Duration drain_time);

  // Puts the limits of `options` in force that follow SIGHUP (server/options.cc). What callers hold
  // stays theirs, even if it is more than a new limit allows.
  void Follow(const ServerOptions& options);
  // Counts a configuration file that could not be used.
  void CountReloadFailure();

  // Ends builds whose client is silent. The server does this periodically; tests call it after they
  // have moved the clock.
  void EndIdleBuilds();

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SERVER_H_
