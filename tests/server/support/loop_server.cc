#include "tests/server/support/loop_server.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>

#include "core/status/check.h"

namespace phimap::testing {

LoopServer::LoopServer(StreamAcceptor& acceptor, const ConnectionLimits& limits, bool shared,
                       int faults)
    : limits_(limits),
      owner_{acceptor,
             limits_,
             [](const Peer&, const std::function<void()>&, const std::function<void()>& drop) {
               drop();
             },
             [this](Connection& connection) { Ended(connection); },
             [](const Peer&) { return true; },
             [shared](const Peer&) { return shared; },
             [faults](const Peer&) mutable { return --faults >= 0; }},
      thread_([this] { loop_->Run(); }) {}

LoopServer::~LoopServer() {
  Run([this] { ForEach([](Connection& connection) { connection.Close(); }); });
  AwaitNoConnections();
  loop_->Stop();
  thread_.join();
}

int LoopServer::Connect(bool http1) {
  std::array<int, 2> ends;
  PHIMAP_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  PHIMAP_CHECK(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
  Run([&] {
    auto connection = std::make_unique<Connection>(
        *loop_, PlainChannel(ends[0]), Peer{.address = "test:", .host = "test", .network = "test"},
        owner_, Door{&owner_.acceptor, http1});
    Connection* const raw = connection.get();
    connections_.emplace(raw, std::move(connection));
    {
      MutexLock lock(&mutex_);
      ++open_;
    }
    raw->Start();
  });
  return ends[1];
}

void LoopServer::Run(const std::function<void()>& task) {
  bool done = false;
  loop_->Post([&] {
    task();
    MutexLock lock(&mutex_);
    done = true;
    changed_.NotifyAll();
  });
  MutexLock lock(&mutex_);
  while (!done) changed_.Wait(&mutex_);
}

void LoopServer::ForEach(const std::function<void(Connection&)>& act) {
  for (auto& [raw, connection] : connections_) {
    if (!raw->ended()) act(*raw);
  }
}

void LoopServer::Ended(Connection& connection) {
  loop_->Post([this, raw = &connection] {
    if (connections_.erase(raw) == 0) return;
    MutexLock lock(&mutex_);
    --open_;
    changed_.NotifyAll();
  });
}

void LoopServer::AwaitNoConnections() {
  MutexLock lock(&mutex_);
  while (open_ > 0) changed_.Wait(&mutex_);
}

}  // namespace phimap::testing
