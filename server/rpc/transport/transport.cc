#include "server/rpc/transport/transport.h"

#include <malloc.h>

#include <functional>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/thread/mutex.h"
#include "core/thread/start_thread.h"
#include "core/thread/steady_time.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/rpc/transport/connection.h"
#include "server/rpc/transport/handshake_queue.h"
#include "server/rpc/transport/host_counts.h"
#include "server/rpc/transport/listener.h"
#include "server/rpc/transport/peer.h"

namespace phimap {

namespace {

struct FaultText {
  const char* reason;
  const char* help;
};

FaultText TextOf(ClientFault fault) {
  switch (fault) {
    case ClientFault::kResets:
      return {"resets",
              "the client cancels calls as fast as it makes them; if it is a proxy of many "
              "clients, give its address in --proxy"};
    case ClientFault::kControlFrames:
      return {
          "control_frames",
          "the client sends too many pings or other frames that carry no call; correct the client"};
    case ClientFault::kHeaders:
      return {"headers",
              "the client sends metadata over 16 KiB again and again; correct the client"};
    case ClientFault::kProtocol:
      return {"protocol",
              "the client violated the protocol of HTTP/2 or HTTP/1.1 (gRPC's C core does so when "
              "a call is "
              "cancelled before it is sent); --proxy does not exempt a client from this rule"};
    case ClientFault::kNotHttp2:
      return {"not_http2",
              "something other than a gRPC client connects, perhaps a browser, a probe or a client "
              "that uses TLS where the server does not; the port of --http has the health checks"};
    case ClientFault::kTlsRecords:
      return {"tls_records",
              "the client sends TLS records without data, such as new keys, one after another; "
              "correct the client"};
    case ClientFault::kRefusedCalls:
      return {"refused_calls",
              "the address makes call after call that is refused; correct the client's token, or, "
              "if it is a proxy of many clients, give it in --proxy"};
    case ClientFault::kNoCall:
      return {"no_call",
              "nearly --max_connections are open, many without a call that was admitted; find out "
              "who opens them"};
    case ClientFault::kProxyHeader:
      return {"proxy_header",
              "the address is in --proxy_protocol, so each of its connections must begin with a "
              "header of the PROXY protocol, version 2; have the proxy send it (in HAProxy, "
              "send-proxy-v2 and check-send-proxy), or give the address in --proxy instead; other "
              "programs on the proxy's machine must connect by the proxy"};
    case ClientFault::kCertificate:
      return {"certificate",
              "its streams ended with its connection; give the client another certificate, or "
              "correct the list of --tls_client_crl"};
  }
  return {"", ""};
}

prometheus::Counter& CounterOf(const ConnectionMetrics& metrics, ClientFault fault) {
  switch (fault) {
    case ClientFault::kResets:
      return *metrics.ended_for_resets;
    case ClientFault::kControlFrames:
      return *metrics.ended_for_control_frames;
    case ClientFault::kHeaders:
      return *metrics.ended_for_headers;
    case ClientFault::kNotHttp2:
      return *metrics.ended_for_other_protocol;
    case ClientFault::kTlsRecords:
      return *metrics.ended_for_tls_records;
    case ClientFault::kRefusedCalls:
      return *metrics.ended_for_refused_calls;
    case ClientFault::kNoCall:
      return *metrics.ended_for_no_call;
    case ClientFault::kProxyHeader:
      return *metrics.ended_for_proxy_header;
    case ClientFault::kCertificate:
      return *metrics.ended_for_certificate;
    case ClientFault::kProtocol:
      break;
  }
  return *metrics.ended_for_protocol;
}

const char* HelpFor(absl::string_view handshake_failure) {
  if (handshake_failure == "not_tls") {
    return "this port requires TLS; have the client use it; if the peer is a proxy that sends the "
           "PROXY protocol, give its address in --proxy_protocol";
  }
  if (handshake_failure == "no_certificate") {
    return "--tls_client_ca requires a client certificate; give the client one";
  }
  if (handshake_failure == "certificate") {
    return "give the client a certificate of --tls_client_ca that has not expired and is not on a "
           "list of --tls_client_crl, which must not have expired either; if the reason is an "
           "alert, the client does not trust the authority of --tls_certificate";
  }
  if (handshake_failure == "no_http2") return "the client must offer h2 by ALPN, as gRPC does";
  return "see the reason; other versions of TLS or ciphers are a common one";
}

// Shortest time between two searches for connections that may be ended to make room.
constexpr absl::Duration kRoomPeriod = absl::Milliseconds(500);
// Bytes of closed connections after which memory is given back, and the time that this waits for
// more. It takes 0.06 ms for each free MiB of the process, on the loop's thread.
constexpr size_t kReturnedBytes = size_t{8} << 20;
constexpr absl::Duration kReturnDelay = absl::Milliseconds(200);

}  // namespace

// Counts and logs connections that were ended, or never began, because of a client's fault.
//
// Counts every such connection, and logs at most one of each reason every ten seconds. Not
// thread-safe.
class ClientFaultLog {
 public:
  ClientFaultLog(const ConnectionMetrics& metrics, const Logger& logger)
      : metrics_(metrics), logger_(logger) {}

  // `why`: the reason that was sent to the client.
  void Note(const Peer& peer, ClientFault fault, absl::string_view why);
  void NoteHandshake(const Peer& peer, const HandshakeFailure& failure);
  // A client behind a proxy has as many connections as its address may have.
  void NoteTooMany(const HostCounts& hosts, const Peer& client);

 private:
  const ConnectionMetrics& metrics_;
  const Logger& logger_;
  // By reason, of which there are few.
  std::map<std::string, Seldom, std::less<>> logs_;
  std::map<std::string, Seldom, std::less<>> logs_handshakes_;
  Seldom logs_addresses_;
};

void ClientFaultLog::Note(const Peer& peer, ClientFault fault, absl::string_view why) {
  CounterOf(metrics_, fault).Increment();
  const FaultText text = TextOf(fault);
  if (!logs_[text.reason].Now()) return;
  logger_.Log(LogLevel::kWarning, "connection_ended",
              {{"peer", peer.address}, {"reason", text.reason}, {"why", why}, {"help", text.help}});
}

void ClientFaultLog::NoteHandshake(const Peer& peer, const HandshakeFailure& failure) {
  metrics_.HandshakeFailed(failure.kind);
  if (!logs_handshakes_[failure.kind].Now()) return;
  logger_.Log(LogLevel::kWarning, "handshake_failed",
              {{"peer", peer.address},
               {"reason", failure.kind},
               {"why", failure.why},
               {"help", HelpFor(failure.kind)}});
}

void ClientFaultLog::NoteTooMany(const HostCounts& hosts, const Peer& client) {
  metrics_.refused_by_address->Increment();
  if (logs_addresses_.Now()) LogTooManyOfHost(logger_, hosts, client);
}

// A loop, its thread and the connections on it.
class Transport::IoThread {
 public:
  IoThread(const Options& options, StreamAcceptor& acceptor, const ConnectionMetrics& metrics,
           const Logger& logger, HandshakeQueue* handshakes, HostCounts& hosts)
      : limits_(options.limits),
        connections_that_stay_(options.connections_that_stay),
        metrics_(metrics),
        hosts_(hosts),
        fault_log_(metrics, logger),
        owner_{acceptor,
               limits_,
               [this, handshakes](const Peer& peer, std::function<void()> step,
                                  std::function<void()> drop) {
                 const auto dropped = [&metrics = metrics_, drop = std::move(drop)] {
                   metrics.HandshakeFailed("queue_full");
                   drop();
                 };
                 handshakes->Add(peer.network, {std::move(step), dropped});
               },
               [this](Connection& connection) { Ended(connection); },
               [this, &hosts](const Peer& client) {
                 if (hosts.PassTo(client)) return true;
                 fault_log_.NoteTooMany(hosts, client);
                 return false;
               },
               [&hosts](const Peer& peer) { return hosts.IsExempt(peer); },
               [this, &hosts](const Peer& peer) { return hosts.CountFault(peer, loop_->now()); },
               [this](const Peer& peer, const HandshakeFailure& failure) {
                 fault_log_.NoteHandshake(peer, failure);
               },
               [this](const Peer& peer, ClientFault fault, absl::string_view why) {
                 fault_log_.Note(peer, fault, why);
               }},
        thread_(StartThread("an event loop", [this] {
          RequestTimeSlice(kShortTimeSlice);
          loop_->Run();
        })) {}

  ~IoThread() {
    loop_->Stop();
    thread_.join();
    listeners_.clear();
    connections_.clear();
  }

  EventLoop& loop() { return *loop_; }
  std::vector<std::unique_ptr<Listener>>& listeners() { return listeners_; }

  // Must be called on the loop's thread, like all functions below.
  void Take(std::unique_ptr<Channel> channel, const Peer& peer, Door door) {
    Connection* raw = nullptr;
    try {
      auto connection =
          std::make_unique<Connection>(*loop_, std::move(channel), peer, owner_, door);
      raw = connection.get();
      connections_.emplace(raw, std::move(connection));
    } catch (const std::bad_alloc&) {
      return hosts_.Return(peer);
    }
    metrics_.open->Increment();
    if (connections_that_stay_ > 0 && connections_.size() > connections_that_stay_) EndOldest();
    try {
      raw->Start();
    } catch (const std::bad_alloc&) {
      raw->OnOutOfMemory();
    }
  }

  template <typename Act>
  void ForEach(Act act) {
    // `act` may end a connection; ended connections are destroyed later, not within this loop.
    for (auto& [raw, connection] : connections_) {
      if (!raw->ended()) act(*raw);
    }
  }

  bool empty() const { return connections_.empty(); }

  // Calls `done` once, when no connection is left.
  void WhenEmpty(std::function<void()> done) {
    if (connections_.empty()) return done();
    when_empty_ = std::move(done);
  }

 private:
  struct ReturnTimer final : Timer {
    explicit ReturnTimer(IoThread& thread) : thread(thread) {}
    void OnTime() override {
      thread.freed_bytes_ = 0;
      malloc_trim(0);
    }
    IoThread& thread;
  };

  // Ends the oldest connection that has not ended.
  void EndOldest() {
    Connection* oldest = nullptr;
    ForEach([&oldest](Connection& connection) {
      if (oldest == nullptr || connection.began() < oldest->began()) oldest = &connection;
    });
    if (oldest != nullptr) oldest->Close();
  }

  void Ended(Connection& connection) {
    hosts_.Return(connection.peer());
    metrics_.open->Decrement();
    const size_t bytes = connection.peak_bytes();
    connections_.erase(&connection);
    ReturnMemory(bytes);
    if (connections_.empty() && when_empty_) std::exchange(when_empty_, nullptr)();
  }

  // Gives the memory of closed connections back to the operating system. glibc keeps it otherwise:
  // the few blocks that live on pin the heap of this thread.
  void ReturnMemory(size_t bytes) {
    const bool was_enough = freed_bytes_ >= kReturnedBytes;
    freed_bytes_ += bytes;
    if (was_enough || freed_bytes_ < kReturnedBytes) return;
    loop_->timers().Set(return_timer_, loop_->now() + kReturnDelay);
  }

  const ConnectionLimits limits_;
  const size_t connections_that_stay_;
  const ConnectionMetrics& metrics_;
  HostCounts& hosts_;
  ClientFaultLog fault_log_;
  const std::shared_ptr<EventLoop> loop_ = std::make_shared<EventLoop>();
  const Connection::Owner owner_;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::function<void()> when_empty_;
  // Bytes of the connections that closed since memory was given back.
  size_t freed_bytes_ = 0;
  ReturnTimer return_timer_{*this};
  std::thread thread_;
};

struct Transport::Parts {
  Parts(const Options& the_options, StreamAcceptor& acceptor, const ConnectionMetrics& the_metrics,
        const Logger& the_logger)
      : options(the_options), metrics(the_metrics), logger(the_logger) {
    if (options.max_queued_handshakes > 0) handshakes.emplace(options.max_queued_handshakes);
    for (int i = 0; i < options.io_threads; ++i) {
      threads.push_back(std::make_unique<IoThread>(options, acceptor, metrics, logger,
                                                   handshakes.has_value() ? &*handshakes : nullptr,
                                                   hosts));
    }
  }

  const Options options;
  const ConnectionMetrics& metrics;
  const Logger& logger;
  HostCounts hosts{options.max_connections, options.max_connections_per_host, options.proxies,
                   options.header_proxies};
  // Has a thread, so it is made only if there may be handshakes.
  std::optional<HandshakeQueue> handshakes;
  std::vector<std::unique_ptr<IoThread>> threads;
  // Used on the first loop's thread only, which accepts the connections of all loops.
  size_t next_thread = 0;
  absl::Time room_made = absl::InfinitePast();
};

Transport::Transport(const Options& options, StreamAcceptor& acceptor,
                     const ConnectionMetrics& metrics, const Logger& logger)
    : parts_(std::make_unique<Parts>(options, acceptor, metrics, logger)) {}

Transport::~Transport() {
  StopListening();
  CloseAll();
}

int Transport::loops() const { return static_cast<int>(parts_->threads.size()); }

EventLoop& Transport::loop(int i) { return parts_->threads[static_cast<size_t>(i)]->loop(); }

void Transport::OnEachLoop(const std::function<void(IoThread&)>& task) {
  Mutex mutex;
  CondVar changed;
  size_t done = 0;
  for (const auto& thread : parts_->threads) {
    thread->loop().Post([&, raw = thread.get()] {
      task(*raw);
      MutexLock lock(&mutex);
      ++done;
      changed.NotifyAll();
    });
  }
  MutexLock lock(&mutex);
  while (done < parts_->threads.size()) changed.Wait(&mutex);
}

void Transport::Listen(std::vector<Endpoint> endpoints) {
  const auto spread = [parts = parts_.get()](Door door) {
    return [parts, door](std::unique_ptr<Channel> channel, Peer peer) {
      IoThread& thread = *parts->threads[parts->next_thread++ % parts->threads.size()];
      if (thread.loop().OnThisThread()) return thread.Take(std::move(channel), peer, door);
      // A task must be copyable, but a unique_ptr is not.
      auto shared = std::make_shared<std::unique_ptr<Channel>>(std::move(channel));
      thread.loop().Post([&thread, shared, peer = std::move(peer), door] {
        thread.Take(std::move(*shared), peer, door);
      });
    };
  };
  OnEachLoop([&](IoThread& thread) {
    if (&thread != parts_->threads[0].get()) return;
    const Listener::Options options{parts_->options.max_descriptor, parts_->hosts, parts_->metrics,
                                    parts_->logger, [this] { MakeRoom(); }};
    for (Endpoint& endpoint : endpoints) {
      thread.listeners().push_back(
          std::make_unique<Listener>(thread.loop(), std::move(endpoint.socket), endpoint.tls,
                                     endpoint.door.http1, options, spread(endpoint.door)));
    }
  });
}

void Transport::SetMaxConnections(int max_connections, int max_connections_per_host) {
  parts_->hosts.SetLimits(max_connections, max_connections_per_host);
}

void Transport::MakeRoom() {
  const absl::Time now = SteadyNow();
  if (now - parts_->room_made < kRoomPeriod) return;
  parts_->room_made = now;
  for (const auto& thread : parts_->threads) {
    thread->loop().Post([raw = thread.get()] {
      raw->ForEach([](Connection& connection) { connection.CloseIdleStranger(); });
    });
  }
}

void Transport::StopListening() {
  OnEachLoop([](IoThread& thread) { thread.listeners().clear(); });
}

void Transport::BeginGoAway() {
  OnEachLoop([](IoThread& thread) {
    thread.ForEach([](Connection& connection) { connection.BeginGoAway(); });
  });
}

void Transport::FinishGoAway() {
  OnEachLoop([](IoThread& thread) {
    thread.ForEach([](Connection& connection) { connection.FinishGoAway(); });
  });
}

bool Transport::AwaitEnd(std::chrono::steady_clock::time_point deadline) {
  struct Waiting {
    Mutex mutex;
    CondVar changed;
    size_t empty ABSL_GUARDED_BY(mutex) = 0;
  };
  const auto waiting = std::make_shared<Waiting>();
  OnEachLoop([&](IoThread& thread) {
    thread.WhenEmpty([waiting] {
      MutexLock lock(&waiting->mutex);
      ++waiting->empty;
      waiting->changed.NotifyAll();
    });
  });
  MutexLock lock(&waiting->mutex);
  while (waiting->empty < parts_->threads.size()) {
    if (!waiting->changed.WaitUntil(&waiting->mutex, deadline)) break;
  }
  return waiting->empty == parts_->threads.size();
}

void Transport::CloseAll() {
  OnEachLoop(
      [](IoThread& thread) { thread.ForEach([](Connection& connection) { connection.Close(); }); });
  // A connection in a TLS handshake lives until the current step returns, which is soon.
  while (!AwaitEnd(std::chrono::steady_clock::now() + std::chrono::seconds(1))) {
  }
}

}  // namespace phimap
