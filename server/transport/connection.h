// One HTTP/2 connection: nghttp2's session between a channel and the streams' handlers.
//
// Guarantees: the memory that a client can occupy is bounded: headers by max_header_bytes, of one
// request at a time, bodies by the windows, unread answers by max_output_bytes (then nothing more
// is read), and frames that need answers by nghttp2's limits. A client that exceeds a limit loses
// its stream or its connection; the process continues. Not thread-safe: it lives on its loop's
// thread, except for the handshake, which runs on the pool.
#ifndef PHIMAP_SERVER_TRANSPORT_CONNECTION_H_
#define PHIMAP_SERVER_TRANSPORT_CONNECTION_H_

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/transport/channel.h"
#include "server/transport/connection_limits.h"
#include "server/transport/event_loop.h"
#include "server/transport/flood_guard.h"
#include "server/transport/http2_stream.h"
#include "server/transport/output_queue.h"
#include "server/transport/peer.h"
#include "server/transport/stall_watch.h"
#include "server/transport/stream.h"

namespace phimap {

// Fault of a client for which its connection is ended.
enum class ClientFault { kResets, kControlFrames, kHeaders, kProtocol };

class Connection final : public Pollable {
 public:
  // Owner of a connection.
  struct Owner {
    StreamAcceptor& acceptor;
    const ConnectionLimits& limits;
    // Runs a step of a handshake on a thread that may take a millisecond; false: not now.
    std::function<bool(std::function<void()>)> run_handshake;
    // The connection is at its end: to be destroyed, but not within the call.
    std::function<void(Connection&)> ended;
    // Whether many clients may be behind it: then none is to suffer for the resets of another.
    std::function<bool(const Peer&)> shared = [](const Peer&) { return false; };
    // Called when a connection is ended because of the client's fault.
    std::function<void(const Peer&, ClientFault, absl::string_view why)> blamed =
        [](const Peer&, ClientFault, absl::string_view) {};
  };

  // `owner` outlives the connection.
  Connection(EventLoop& loop, std::unique_ptr<Channel> channel, Peer peer, const Owner& owner);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Begins with the handshake.
  void Start();

  // Tells the client that the connection takes calls for a moment yet, and that the next should go
  // elsewhere.
  void BeginGoAway();
  // Takes no call from now on; the connection ends with the last call under way.
  void FinishGoAway();
  // Ends it now, with all its calls.
  void Close();

  EventLoop& loop() { return loop_; }
  const Peer& peer() const { return peer_; }
  size_t streams() const { return streams_.size(); }
  bool ended() const { return state_ == State::kEnded; }

  void OnReady(uint32_t events) override;

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
  // Ends a connection some time after its GOAWAY.
  struct GoAwayTimer final : Timer {
    explicit GoAwayTimer(Connection& connection) : connection(connection) {}
    void OnTime() override { connection.FinishGoAway(); }
    Connection& connection;
  };

  void ContinueHandshake();
  void HandshakeStepDone(Channel::State state, const Peer& peer);
  void Open();
  // Reads until there is nothing more, or the connection has had its share of this turn.
  void ReadShare();
  // Feeds bytes to the session, as far as some calls reach; returns how many it took, nothing when
  // the connection has ended.
  std::optional<size_t> Feed(absl::string_view bytes);
  // Frames the queued output, and sends as much as the socket takes.
  void Flush();
  // Sends for a share of the turn, so that a client that takes large answers as fast as they come
  // does not keep others waiting; false when the connection has ended.
  bool SendShare();
  bool Frame();
  // Data requested while it sends is sent with it.
  void WantFlush() {
    if (!flushing_) loop_.AtEndOfTurn(*this);
  }
  void Watch(uint32_t events);
  bool OutputFull() const { return output_.size() >= owner_.limits.max_output_bytes; }
  // All is sent and nothing more is taken: waits for the client to see it.
  void Linger();
  void DropInput();
  // Whether a stream was answered, if only in part, or lived long.
  bool IsAnswered(const Http2Stream& stream) const;
  // Tells the client why the connection ends; returns the value with which nghttp2's callback ends
  // it.
  int EndFlood(ClientFault fault, absl::string_view why);
  void End();

  // From nghttp2.
  int OnBeginHeaders(int32_t stream_id);
  // `valid`: nghttp2 drops others.
  int OnHeader(int32_t stream_id, absl::string_view name, absl::string_view value, bool valid);
  int OnFrame(const nghttp2_frame& frame);
  int OnDataChunk(int32_t stream_id, absl::string_view bytes);
  int OnStreamClose(int32_t stream_id, uint32_t code);
  int OnFrameSent(const nghttp2_frame& frame);
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
  bool handshaking_elsewhere_ = false;
  // Events registered with epoll.
  bool added_ = false;
  uint32_t watched_ = 0;
  nghttp2_session* session_ = nullptr;
  absl::flat_hash_map<int32_t, std::unique_ptr<Http2Stream>> streams_;
  OutputQueue output_;
  bool write_blocked_ = false;
  // The poll of the last share of reading.
  absl::Time last_share_ = absl::InfinitePast();
  bool flushing_ = false;
  // The client has sent a frame: it speaks HTTP/2.
  bool greeted_ = false;
  bool going_away_ = false;
  bool gone_away_ = false;
  // True while nghttp2 calls back: the session must not send or be destroyed.
  bool in_session_ = false;
  // End was called meanwhile.
  bool end_wanted_ = false;
  // Read but not fed, because the turn's share was over.
  std::string input_;
  size_t input_used_ = 0;
  // Head of the request whose headers are coming: blocks of headers come one after the other.
  RequestHead head_;
  // Calls that began since the session was fed last.
  int fed_calls_ = 0;
  // Bytes of the block that is coming, a request's or trailers, with everything that is dropped.
  size_t block_bytes_ = 0;
  // Reason of a GOAWAY with an error; nghttp2's own has this one.
  ClientFault fault_ = ClientFault::kProtocol;
  AgeTimer age_timer_;
  GoAwayTimer go_away_timer_;
  StallWatch stall_watch_;
  // Tells a handshake step on another thread that the connection has ended.
  std::shared_ptr<Connection*> self_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_CONNECTION_H_
