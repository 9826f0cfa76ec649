// The server, composed: store, registry, scheduler, builds, services and the two listeners.
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
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/observe/log.h"
#include "server/open_store.h"
#include "server/options.h"

namespace phimap {

class Server {
 public:
  // Replacements for time and load, for tests.
  struct Hooks {
    std::function<absl::Time()> transform_clock;
    std::function<std::chrono::steady_clock::time_point()> build_clock;
    // Called on build threads before each tile and each block, instead of letting Transforms pass
    // now and then.
    std::function<void()> build_yield;
    // Called on the loader thread before it reads an artifact.
    std::function<void()> before_load;
  };

  // Listens and serves. `logger` outlives the server. Errors: FAILED_PRECONDITION (an address that
  // cannot be bound, a file of TLS or of tokens that cannot be used), INVALID_ARGUMENT (the path of
  // a socket is too long, a token file is wrong).
  // REQUIRES: options that ParseOptions let pass; which addresses other machines may reach is
  // checked there, before anything is created.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       OpenedStore store, const Logger& logger,
                                                       Hooks hooks = {});
  // Shuts down at once unless Shutdown was called.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Listening address, with the port that port 0 became.
  const std::string& grpc_address() const;
  // Empty when options.http is.
  const std::string& http_address() const;

  // Tells health checks, refuses new calls and builds, waits for those under way for at most
  // `drain_time`, cancels the rest. Blocking. Idempotent.
  void Shutdown(absl::Duration drain_time);

  // Ends builds whose client is silent, as the server does by itself now and then; for tests that
  // move the clock.
  void EndIdleBuilds();

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SERVER_H_
