// One connection: a session (HTTP/2 or HTTP/1.1) between a channel and the handlers of streams.
//
// Guarantees: the memory that a client can occupy is bounded. Headers are stored for one request at
// a time, up to max_header_bytes. Bodies are bounded by the windows of the streams.
// Streams, frames and unread answers are bounded by ConnectionLimits::MaxHeldBytes: above this
// limit, no more input is read, and a client that does not read its answers is disconnected after
// MaxStall. A client that exceeds a limit loses its stream or its connection; the process
// continues. Not thread-safe: used on the loop's thread only, except for the handshake, which runs
// on a pool.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_CONNECTION_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/thread/steady_time.h"
#include "server/rpc/transport/channel.h"
#include "server/rpc/transport/connection_limits.h"
#include "server/rpc/transport/event_loop.h"
#include "server/rpc/transport/peer.h"
#include "server/rpc/transport/session.h"
#include "server/rpc/transport/stream.h"
#include "server/rpc/transport/timer_wheel.h"

namespace phimap {

class Connection;

// Closes connections of clients that send nothing or do not read their answers. Watches one of
// them: its handshake, its idle time, unread answers on the connection or on a
// stream, and whether the client closes it after the last answer. Not thread-safe: used on the
// loop's thread only.
class StallWatch {
 public:
  // `connection` owns the StallWatch as a member.
  explicit StallWatch(Connection& connection)
      : connection_(connection), idle_timer_(*this), stream_timer_(*this) {}

  // Starts the handshake: the client must send its first frame within handshake_time. The
  // connection then calls EndHandshake.
  void BeginHandshake();
  void EndHandshake() { idle_timer_.Cancel(); }
  // Notes that `bytes` bytes were written to the socket.
  void NoteWritten(int64_t bytes) { written_ += bytes; }
  // Checks whether the connection is idle or stalled. To be called when everything that can be sent
  // has been sent.
  void Look();
  // Starts to check streams for stalls. To be called when a stream has something to send.
  void WatchStreams();
  // Gives the client time to read the last bytes and to close the connection. To be called when
  // everything has been sent and no more calls are accepted.
  void BeginLinger();
  void Stop();

 private:
  struct IdleTimer final : Timer {
    explicit IdleTimer(StallWatch& watch) : watch(watch) {}
    void OnTime() override { watch.OnIdleTime(); }
    StallWatch& watch;
  };
  struct StreamTimer final : Timer {
    explicit StreamTimer(StallWatch& watch) : watch(watch) {}
    void OnTime() override { watch.EndStalledStreams(); }
    StallWatch& watch;
  };

  void OnIdleTime();
  void OnLingerTime();
  void EndStalledStreams();
  // Gives the client max_stall, from now on, to read the required bytes (ConnectionLimits::OwedOf).
  void AwaitProgress();
  // Bytes in the socket's send queue, which the client's system has not acknowledged.
  int64_t Unacknowledged() const;
  // Bytes that the client's system has acknowledged, except for a constant offset. Only differences
  // between two calls have a meaning.
  int64_t Taken() const { return written_ - Unacknowledged(); }
  int64_t UnsentBytes() const;
  // Whether the client's window of the connection is closed, if output waits for it.
  bool IsShut() const;

  Connection& connection_;
  // Bytes written to the socket.
  int64_t written_ = 0;
  // While the connection is stalled, the value that Taken must reach before the idle timer fires.
  int64_t taken_goal_ = 0;
  // While lingering, the result of Unacknowledged() at the last check.
  int64_t unacknowledged_ = 0;
  // State of the connection when the idle timer was last set. Stalled: output waits because the
  // socket is full or the client's window is closed. Half head: no stream, but a request's first
  // lines.
  bool stalled_ = false;
  bool idle_ = false;
  bool half_head_ = false;
  IdleTimer idle_timer_;
  StreamTimer stream_timer_;
};

// What a connection is for, which depends on the port that the client connected to.
struct Door {
  // Takes the requests.
  StreamAcceptor* acceptor = nullptr;
  // Whether clients may speak HTTP/1.1 too.
  bool http1 = false;
  // Whether a connection of HTTP/1.1 ends after its first answer.
  bool one_answer = false;
};

class Connection final : public Pollable {
 public:
  // Owner of a connection.
  struct Owner {
    // Where requests go that come through no particular door.
    StreamAcceptor& acceptor;
    const ConnectionLimits& limits;
    // Runs a step of a TLS handshake with this peer, about a millisecond of CPU time, on another
    // thread. If too many steps are queued, calls the second function instead, on any thread.
    std::function<void(const Peer&, std::function<void()>, std::function<void()>)> run_handshake;
    // Called by the loop some time after the connection has ended. The owner must destroy it.
    std::function<void(Connection&)> ended;
    // Counts the connection for the client that the header of a proxy names, in place of the proxy.
    // Returns false if that client has too many connections.
    std::function<bool(const Peer& client)> passed_to = [](const Peer&) { return true; };
    // Whether many clients may share the connection, as behind a proxy. Such a connection is not
    // ended for resets, since that would punish the other clients.
    std::function<bool(const Peer&)> shared = [](const Peer&) { return false; };
    // Counts a fault of the peer's host: a refused call of a stranger, or a reset of a stream
    // without an answer. Returns false if the host has used up its allowance.
    std::function<bool(const Peer&)> host_may = [](const Peer&) { return true; };
    // Called when a handshake has failed because of what the client sent.
    std::function<void(const Peer&, const HandshakeFailure&)> handshake_failed =
        [](const Peer&, const HandshakeFailure&) {};
    // Called when a connection is ended because of the client's fault.
    std::function<void(const Peer&, ClientFault, absl::string_view why)> blamed =
        [](const Peer&, ClientFault, absl::string_view) {};
  };

  // `owner` must outlive the connection. Without a `door`, the client must speak HTTP/2.
  Connection(EventLoop& loop, std::unique_ptr<Channel> channel, Peer peer, const Owner& owner,
             Door door = {});
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Starts the connection: the header of a proxy, if the peer is one (Peer::proxy), the TLS
  // handshake, if any, then the session.
  void Start();

  // Asks the client to send new calls elsewhere. The connection still accepts calls for
  // go_away_notice, and then calls FinishGoAway.
  void BeginGoAway();
  // Accepts no call from now on. The connection ends when the last call in progress has ended.
  void FinishGoAway();
  // Ends the connection now, with all its calls.
  void Close();
  // Ends the connection if it has been a stranger's for ConnectionLimits::stranger_time.
  void CloseIdleStranger();

  EventLoop& loop() { return loop_; }
  const Peer& peer() const { return peer_; }
  size_t streams() const { return session_ == nullptr ? 0 : session_->streams(); }
  bool ended() const { return state_ == State::kEnded; }
  // When the client connected.
  absl::Time began() const { return began_; }
  // Notes that a call of this connection was admitted.
  void NoteAdmitted() { stranger_ = false; }
  // Whether no call of this connection has been admitted yet.
  bool stranger() const override { return stranger_; }
  // Bytes that the connection holds for streams, frames and answers.
  size_t HeldBytes() const;
  // About the most bytes that it held at a time, once it has ended; 0 before.
  size_t peak_bytes() const { return peak_bytes_; }

  void OnReady(uint32_t events) override;
  // Ends the connection with all its calls.
  void OnOutOfMemory() override;

  // The rest, up to `private`, is for the session.

  const Owner& owner() const { return owner_; }
  const Door& door() const { return door_; }
  StreamAcceptor& acceptor() const { return *door_.acceptor; }
  OutputQueue& output() { return output_; }
  bool OutputFull() const { return output_.size() >= owner_.limits.MaxOutputBytes(stranger_); }
  StallWatch& stall_watch() { return stall_watch_; }
  // Schedules Flush at the end of the round. No-op during Flush, which sends the new data as well.
  void WantFlush() {
    if (!flushing_) loop_.AtEndOfRound(*this);
  }
  // Notes that the client has sent a frame or a head, so it speaks the session's protocol.
  void NoteGreeting() {
    if (!greeted_) stall_watch_.EndHandshake();
    greeted_ = true;
  }
  // Ends the connection when its output is sent. Returns whether that was decided before.
  bool Condemn() { return std::exchange(condemned_, true); }
  // Ends the connection because there is no memory to go on with it.
  void CondemnWithoutMemory() {
    loop_.NoteMemoryFailures(1);
    condemned_ = true;
  }
  // Counts a call that was refused. Returns false if the client makes too many of them.
  bool MayBeRefused() { return !stranger_ || owner_.shared(peer_) || owner_.host_may(peer_); }

 private:
  friend class StallWatch;
  enum class State { kProxyHeader, kHandshake, kOpen, kLingering, kEnded };

  struct AgeTimer final : Timer {
    explicit AgeTimer(Connection& connection) : connection(connection) {}
    void OnTime() override { connection.OnAge(); }
    Connection& connection;
  };
  // Ends the connection gracefully; the second time, after the grace, at once.
  void OnAge();
  // Calls FinishGoAway some time after BeginGoAway.
  struct GoAwayTimer final : Timer {
    explicit GoAwayTimer(Connection& connection) : connection(connection) {}
    void OnTime() override { connection.FinishGoAway(); }
    Connection& connection;
  };

  // Has the owner destroy the connection. A timer needs no memory, unlike a task.
  struct EndedTimer final : Timer {
    explicit EndedTimer(Connection& connection) : connection(connection) {}
    void OnTime() override { connection.owner_.ended(connection); }
    Connection& connection;
  };

  // Reads the header of a proxy, and no byte behind it.
  void ReadProxyHeader();
  // Makes the client that the header names the peer.
  void TakeProxyHeader();
  void RefuseProxyHeader(absl::string_view why);
  // Says that the client's certificate counts no longer.
  void BlameDistrusted();
  void EndDistrusted();
  void BeginHandshake();
  void ContinueHandshake();
  void HandshakeStepDone(Channel::State state, const Peer& peer);
  void GoOnAfterHandshakeStep(Channel::State state);
  void Open();
  // Reads until no input is left or the connection has used its share of this round of the loop.
  void ReadShare();
  void OnNothingRead(Channel::State state);
  // Runs `work` with in_session_ set, also if it finds no memory.
  template <typename Work>
  auto InSession(const Work& work) {
    in_session_ = true;
    try {
      auto result = work();
      in_session_ = false;
      return result;
    } catch (const std::bad_alloc&) {
      in_session_ = false;
      throw;
    }
  }
  // Feeds `bytes` to the session. Returns the number of bytes consumed, or nullopt if the
  // connection has ended.
  std::optional<size_t> Feed(absl::string_view bytes);
  // Frames the queued output, and sends as much as the socket accepts.
  void Flush();
  // Sends for at most a share of the round, so that a client that reads large answers quickly does
  // not delay others. Returns false if the connection must end.
  bool SendShare();
  // Moves frames from the session to output_ until it is full. Returns false on an error.
  bool Frame();
  // Returns false if that ended the connection, because the system lacks memory for it.
  bool Watch(uint32_t events);
  // Whether nothing more is read until the client has read answers, or a handler has gone on.
  bool Full() const {
    return OutputFull() || session_->blocked() ||
           HeldBytes() >= owner_.limits.MaxHeldBytes(stranger_);
  }
  // Waits until the client has read the last bytes. Called when everything has been sent and no
  // more calls are accepted.
  void Linger();
  void DropInput();
  // Ends a connection that begins with a header although its peer is no proxy that may send one.
  void EndForStrayHeader();
  // Answers a client that does not speak HTTP/2, and ends the connection.
  void EndOtherProtocol(absl::string_view bytes);
  // Sends what the session has queued, such as the reason for the end, as far as the socket takes
  // it, and ends the connection.
  void SendAndEnd();
  void End();
  void AwaitDestruction();

  EventLoop& loop_;
  const Owner& owner_;
  std::unique_ptr<Channel> channel_;
  Peer peer_;
  Door door_;
  State state_ = State::kHandshake;
  // A step of the handshake is queued or running on another thread.
  bool handshaking_elsewhere_ = false;
  // Whether the socket is registered with epoll, and for which events.
  bool added_ = false;
  uint32_t watched_ = 0;
  std::unique_ptr<Session> session_;
  size_t peak_bytes_ = 0;
  OutputQueue output_;
  bool write_blocked_ = false;
  bool stranger_ = true;
  const absl::Time began_ = SteadyNow();
  // The connection ends when its output is sent.
  bool condemned_ = false;
  // Time (EventLoop::now) of the poll after which the connection last read its share of input.
  absl::Time last_share_ = absl::InfinitePast();
  bool flushing_ = false;
  // The client has sent a frame or a head, so it speaks the session's protocol.
  bool greeted_ = false;
  bool going_away_ = false;
  bool gone_away_ = false;
  // True while a function of the session runs, which may call back. During that time the session
  // must not send and must not be destroyed.
  bool in_session_ = false;
  // End was called while in_session_ was true.
  bool end_wanted_ = false;
  // Input that was read but not fed to the session at once, because the share of the round was used
  // up. `input_used_` is the number of its bytes that have been fed since. Before the handshake,
  // the header of a proxy as far as it has arrived.
  std::string input_;
  size_t input_used_ = 0;
  AgeTimer age_timer_;
  // Whether the connection is being ended because of its age.
  bool aged_ = false;
  GoAwayTimer go_away_timer_;
  StallWatch stall_watch_;
  EndedTimer ended_timer_{*this};
  // Shared with handshake steps on other threads; holds null once the connection is destroyed.
  std::shared_ptr<Connection*> self_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_CONNECTION_H_
