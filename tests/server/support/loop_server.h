// An event loop on a thread of its own, with connections over socket pairs: a server without a
// listener.
#ifndef PHIMAP_TESTS_SERVER_SUPPORT_LOOP_SERVER_H_
#define PHIMAP_TESTS_SERVER_SUPPORT_LOOP_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "server/sync/mutex.h"
#include "server/transport/connection.h"
#include "server/transport/event_loop.h"

namespace phimap::testing {

class LoopServer {
 public:
  // `shared`: many clients may be behind a connection.
  explicit LoopServer(StreamAcceptor& acceptor, const ConnectionLimits& limits = {},
                      bool shared = false);
  // Closes all connections.
  ~LoopServer();

  // The client's end of a new connection.
  int Connect();
  // Runs `task` on the loop's thread, and returns when it has run.
  void Run(const std::function<void()>& task);
  // On the loop's thread: the connections that have not ended.
  void ForEach(const std::function<void(Connection&)>& act);
  // Returns when no connection is left.
  void AwaitNoConnections() ABSL_LOCKS_EXCLUDED(mutex_);

  EventLoop& loop() { return *loop_; }

 private:
  void Ended(Connection& connection);

  const ConnectionLimits limits_;
  const Connection::Owner owner_;
  const std::shared_ptr<EventLoop> loop_ = std::make_shared<EventLoop>();
  // Used on the loop's thread alone.
  std::map<Connection*, std::unique_ptr<Connection>> connections_;
  Mutex mutex_;
  CondVar changed_;
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_SUPPORT_LOOP_SERVER_H_
