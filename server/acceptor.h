// Accepts connections and hands them over.
//
// Not gRPC's own acceptor: when the process has no descriptor left, that of 1.51 stops accepting
// for good (CVE-2023-4785). This one keeps a part of the descriptors for the store and for
// everything else, closes at once what comes beyond that, so that the client hears of it and may
// try again, and goes on whatever accept says.
//
// Guarantees: a thread of its own; it ends with Stop alone.
// Thread-safety: Stop may be called from any thread but those of `take`.
#ifndef PHIMAP_SERVER_ACCEPTOR_H_
#define PHIMAP_SERVER_ACCEPTOR_H_

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "server/listening_socket.h"
#include "server/observe/connection_metrics.h"
#include "server/observe/log.h"

namespace phimap {

// A listener, and what becomes of its connections.
struct Door {
  ListeningSocket socket;
  // Owns the connection from then on. Does not block, as the connection does not.
  std::function<void(int connection)> take;
};

class Acceptor {
 public:
  // Connections get descriptors below `max_descriptor`: as many as fit beside what the process has
  // open already. `logger` outlives the acceptor, as do the counters of `metrics`.
  Acceptor(std::vector<Door> doors, int max_descriptor, const ConnectionMetrics& metrics,
           const Logger& logger);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Takes no more connections and closes the listeners; clients that connect from then on are told
  // that nobody is there. Idempotent.
  void Stop();

 private:
  enum class Verdict { kDone, kTryLater };

  void Run();
  // Takes what waits at a door.
  Verdict AcceptAll(const Door& door);
  void Refused();
  // Returns false when it is to stop.
  bool Pause();
  // At most one line in ten seconds: what fills the descriptors should not fill the log.
  void Warn(const char* event, const char* reason);

  std::vector<Door> doors_;
  const int max_descriptor_;
  const ConnectionMetrics& metrics_;
  const Logger& logger_;
  std::chrono::steady_clock::time_point quiet_until_;
  // Closing the writing end tells the thread to stop.
  int stop_[2];
  std::thread thread_;
};

// For Acceptor: what RLIMIT_NOFILE allows, less a reserve for everything that is no connection.
int MaxConnectionDescriptor();

}  // namespace phimap

#endif  // PHIMAP_SERVER_ACCEPTOR_H_
