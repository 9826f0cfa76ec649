// One HTTP/2 connection: an nghttp2 session between a channel and the handlers of streams.
//
// Guarantees: the memory that a client can occupy is bounded. Headers are stored for one request at
// a time, up to max_header_bytes. Bodies are bounded by the flow-control windows of the streams.
// Streams, frames and unread answers are bounded by ConnectionLimits::MaxHeldBytes: above this
// limit, no more input is read, and a client that does not read its answers is disconnected after
// MaxStall. A client that exceeds a limit loses its stream or its connection; the process
// continues. Not thread-safe: used on the loop's thread only, except for the handshake, which runs
// on a pool.
#ifndef PHIMAP_SERVER_TRANSPORT_CONNECTION_H_
#define PHIMAP_SERVER_TRANSPORT_CONNECTION_H_

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/time/time.h"
#include "server/sync/steady_time.h"
#include "server/transport/channel.h"
#include "server/transport/connection_limits.h"
#include "server/transport/counted_memory.h"
#include "server/transport/event_loop.h"
#include "server/transport/flood_guard.h"
#include "server/transport/http2_stream.h"
#include "server/transport/output_queue.h"
#include "server/transport/peer.h"
#include "server/transport/stall_watch.h"
#include "server/transport/stream.h"

namespace phimap {

// Kinds of misbehavior of a client for which the server ends its connection.
enum class ClientFault {
  kResets,
  kControlFrames,
  kHeaders,
  kProtocol,
  kNotHttp2,
  kTlsRecords,
  kRefusedCalls,
  kNoCall,
};

class Connection final : public Pollable {
 public:
  // Owner of a connection.
  struct Owner {
    StreamAcceptor& acceptor;
    const ConnectionLimits& limits;
    // Runs a step of a TLS handshake with this peer, about a millisecond of CPU time, on another
    // thread. If too many steps are queued, calls the second function instead, on any thread.
    std::function<void(const Peer&, std::function<void()>, std::function<void()>)> run_handshake;
    // Called by the loop some time after the connection has ended. The owner must destroy it.
    std::function<void(Connection&)> ended;
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

  // `owner` must outlive the connection.
  Connection(EventLoop& loop, std::unique_ptr<Channel> channel, Peer peer, const Owner& owner);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Starts the connection: the TLS handshake, if any, then HTTP/2.
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
  size_t streams() const { return streams_.size(); }
  bool ended() const { return state_ == State::kEnded; }
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

 private:
  friend class Http2Stream;
  friend struct SessionCallbacks;
  friend class StallWatch;
  enum class State { kHandshake, kOpen, kLingering, kEnded };

  struct AgeTimer final : Timer {
    explicit AgeTimer(Connection& connection) : connection(connection) {}
    void OnTime() override { connection.BeginGoAway(); }
    Connection& connection;
  };
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

  void ContinueHandshake();
  void HandshakeStepDone(Channel::State state, const Peer& peer);
  void GoOnAfterHandshakeStep(Channel::State state);
  void Open();
  // Reads until no input is left or the connection has used its share of this round of the loop.
  void ReadShare();
  void OnNothingRead(Channel::State state);
  // Feeds `bytes` to the session, up to a limited number of calls. Returns the number of bytes
  // consumed, or nullopt if the connection has ended.
  std::optional<size_t> Feed(absl::string_view bytes);
  // Frames the queued output, and sends as much as the socket accepts.
  void Flush();
  // Sends for at most a share of the round, so that a client that reads large answers quickly does
  // not delay others. Returns false if the connection must end.
  bool SendShare();
  // Moves frames from the session to output_ until it is full. Returns false on an error.
  bool Frame();
  // Schedules Flush at the end of the round. No-op during Flush, which sends the new data as well.
  void WantFlush() {
    if (!flushing_) loop_.AtEndOfRound(*this);
  }
  // Returns false if that ended the connection, because the system lacks memory for it.
  bool Watch(uint32_t events);
  // Takes what a function of nghttp2 returned. If it had no memory, the connection will end.
  void Require(int result);
  bool OutputFull() const { return output_.size() >= owner_.limits.MaxOutputBytes(stranger_); }
  // Whether no more requests are read until the client has read answers.
  bool Full() const { return OutputFull() || HeldBytes() >= owner_.limits.MaxHeldBytes(stranger_); }
  // Waits until the client has read the last bytes. Called when everything has been sent and no
  // more calls are accepted.
  void Linger();
  void DropInput();
  // Whether the answer of `stream` has begun, or the stream is older than kLongLived.
  bool IsAnswered(const Http2Stream& stream) const;
  // Tells the client why the connection ends, which it does when the reason is sent. Returns the
  // value that makes nghttp2 end the session when a callback returns it.
  int EndFlood(ClientFault fault, absl::string_view why);
  // Answers a client that does not speak HTTP/2, and ends the connection.
  void EndOtherProtocol(absl::string_view bytes);
  // Sends what the session has queued, such as the reason for the end, as far as the socket takes
  // it, and ends the connection.
  void SendAndEnd();
  // Counts the reset of a stream, by either side because of what the client sent. `stream` is null
  // if the stream was refused. Returns false if there were too many.
  bool CountReset(const Http2Stream* stream);
  // Counts a call that was refused. Returns what a callback of nghttp2 returns.
  int CountRefused();
  void End();
  void AwaitDestruction();

  // Counts a frame that carries neither call nor data. Returns what a callback of nghttp2 returns.
  int CountControlFrame();

  // nghttp2's callbacks.
  int OnBeginFrame(const nghttp2_frame_hd& head);
  int OnBeginHeaders(int32_t stream_id);
  // `valid`: false if nghttp2 rejects the field and drops it.
  int OnHeader(int32_t stream_id, absl::string_view name, absl::string_view value, bool valid);
  int OnFrame(const nghttp2_frame& frame);
  int OnDataChunk(int32_t stream_id, absl::string_view bytes);
  int OnStreamClose(int32_t stream_id, uint32_t code);
  int OnFrameSent(const nghttp2_frame& frame);
  size_t UnsentBytes(int32_t stream_id);
  ssize_t ReadBody(int32_t stream_id, size_t length, uint32_t* flags);
  int SendBody(const nghttp2_frame& frame, absl::string_view frame_head, size_t length);
  Http2Stream* Find(int32_t stream_id);
  void EndRequest(Http2Stream& stream);

  EventLoop& loop_;
  const Owner& owner_;
  std::unique_ptr<Channel> channel_;
  Peer peer_;
  FloodGuard flood_guard_;
  State state_ = State::kHandshake;
  // A step of the handshake is queued or running on another thread.
  bool handshaking_elsewhere_ = false;
  // Whether the socket is registered with epoll, and for which events.
  bool added_ = false;
  uint32_t watched_ = 0;
  CountedMemory session_memory_;
  nghttp2_session* session_ = nullptr;
  // Memory of all streams' trailers.
  size_t trailer_bytes_ = 0;
  size_t peak_bytes_ = 0;
  std::unordered_map<int32_t, std::unique_ptr<Http2Stream>> streams_;
  OutputQueue output_;
  bool write_blocked_ = false;
  bool stranger_ = true;
  const absl::Time began_ = SteadyNow();
  // The connection ends when its output is sent.
  bool condemned_ = false;
  // Time (EventLoop::now) of the poll after which the connection last read its share of input.
  absl::Time last_share_ = absl::InfinitePast();
  bool flushing_ = false;
  // The client has sent a frame, so it speaks HTTP/2.
  bool greeted_ = false;
  bool going_away_ = false;
  bool gone_away_ = false;
  // True while a function of nghttp2 runs, which may call back. During that time the session must
  // not send and must not be destroyed.
  bool in_session_ = false;
  // End was called while in_session_ was true.
  bool end_wanted_ = false;
  // Input that was read but not fed to the session at once, because the share of the round was used
  // up. `input_used_` is the number of its bytes that have been fed since.
  std::string input_;
  size_t input_used_ = 0;
  // Head of the request whose headers are arriving. Header blocks never interleave, so one is
  // enough.
  RequestHead head_;
  // Calls that began within the current Feed.
  int fed_calls_ = 0;
  // Bytes of the header block that is arriving, including dropped fields. The block is a request's
  // headers or its trailers.
  size_t block_bytes_ = 0;
  // The fault to report when a GOAWAY with an error is sent. The initial value applies to errors
  // that nghttp2 finds.
  ClientFault fault_ = ClientFault::kProtocol;
  AgeTimer age_timer_;
  GoAwayTimer go_away_timer_;
  StallWatch stall_watch_;
  EndedTimer ended_timer_{*this};
  // Shared with handshake steps on other threads; holds null once the connection is destroyed.
  std::shared_ptr<Connection*> self_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_CONNECTION_H_
