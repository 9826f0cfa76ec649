// Ctrl-C, turned into a CancelToken.
#ifndef PHIMAP_CLIENT_CLI_INTERRUPT_H_
#define PHIMAP_CLIENT_CLI_INTERRUPT_H_

#include <thread>

#include "client/cpp/cancel_token.h"

namespace phimap::cli {

// While an Interrupt exists, the first SIGINT or SIGTERM cancels `token`; a second one ends the
// process, as it does by default. At most one Interrupt may exist at a time.
class Interrupt {
 public:
  // REQUIRES: `token` outlives this.
  explicit Interrupt(client::CancelToken& token);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

 private:
  std::thread watcher_;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_INTERRUPT_H_
