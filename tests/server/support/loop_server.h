// A server without a listener: an event loop on its own thread, with connections over socket pairs.
#ifndef PHIMAP_TESTS_SERVER_SUPPORT_LOOP_SERVER_H_
#define PHIMAP_TESTS_SERVER_SUPPORT_LOOP_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "core/thread/mutex.h"
#include "server/rpc/transport/connection.h"
#include "server/rpc/transport/event_loop.h"

namespace phimap::testing {

class LoopServer {
 public:
  // If `shared` is true, the server expects that many clients may share a connection. `faults`: the
  // number of faults that the host of all connections may make.
  explicit LoopServer(StreamAcceptor& acceptor, const ConnectionLimits& limits = {},
                      bool shared = false, int faults = 1'000'000'000);
  // Closes all connections.
  ~LoopServer();

  // Opens a connection, and returns the client's end of it. `http1`: the client may speak HTTP/1.1.
  int Connect(bool http1 = false);
  // Runs `task` on the loop's thread, and returns when it has run.
  void Run(const std::function<void()>& task);
  // Calls `act` with each connection that has not ended yet. REQUIRES: called on the loop's thread.
  void ForEach(const std::function<void(Connection&)>& act);
  // Returns when no connection is left.
  void AwaitNoConnections() ABSL_LOCKS_EXCLUDED(mutex_);

  EventLoop& loop() { return *loop_; }

 private:
  void Ended(Connection& connection);

  const ConnectionLimits limits_;
  const Connection::Owner owner_;
  const std::shared_ptr<EventLoop> loop_ = std::make_shared<EventLoop>();
  // Used only on the loop's thread.
  std::map<Connection*, std::unique_ptr<Connection>> connections_;
  Mutex mutex_;
  CondVar changed_;
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_SUPPORT_LOOP_SERVER_H_
