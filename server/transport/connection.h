// One HTTP/2 connection: nghttp2's session between a channel and the streams' handlers.
//
// Guarantees: memory that a client can make it hold is bounded whatever it sends: headers by
// max_header_bytes, of one request at a time, bodies by the windows, answers that it does not read
// by max_output_bytes (then nothing more of it is read), and frames that ask for answers by
// nghttp2's limits. What it sends beyond a limit ends the stream or the connection, never the
// process. Not thread-safe: it lives on its loop's thread, but for the handshake, which the pool
// does.
#ifndef PHIMAP_SERVER_TRANSPORT_CONNECTION_H_
#define PHIMAP_SERVER_TRANSPORT_CONNECTION_H_

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/transport/channel.h"
#include "server/transport/event_loop.h"
#include "server/transport/http2_stream.h"
#include "server/transport/output_queue.h"
#include "server/transport/peer.h"
#include "server/transport/reset_allowance.h"
#include "server/transport/stream.h"

namespace phimap {

struct ConnectionLimits {
  // Streams that a client may have open; one more is reset before it costs anything.
  uint32_t max_streams = 1024;
  // Names and values of a request's headers, with 32 bytes for each.
  size_t max_header_bytes = 16 << 10;
  // What a client may send of a body before anyone has taken it.
  uint32_t stream_window = 32 << 10;
  uint32_t connection_window = 8 << 20;
  // Answers that wait for the socket; more are not even framed.
  size_t max_output_bytes = 256 << 10;
  // A client that says nothing, or does not end its handshake, is hung up on: it takes a
  // descriptor.
  absl::Duration handshake_time = absl::Seconds(5);
  // One that has no call for so long, too; it connects again by itself when it has one.
  absl::Duration max_idle = absl::Minutes(30);
  // After which a connection is ended gracefully; clients then connect again, perhaps elsewhere.
  absl::Duration max_age = absl::InfiniteDuration();
  // For how long calls are taken after a client was told to go elsewhere.
  absl::Duration go_away_notice = absl::Seconds(2);
  // How long a client may take to end a request that was answered before its end. A reset that
  // follows the answer at once makes HAProxy drop the answer.
  absl::Duration linger = absl::Milliseconds(500);
  // Frames of a second that carry no call and no data, pings for instance.
  int max_control_frames = 2'000;
  // Header fields of a second beyond max_header_bytes, counted as those are: a byte may name a
  // field of 4 KiB again and again, and each time its bytes are looked at, a nanosecond each.
  size_t max_dropped_header_bytes = 1 << 20;
  // How long a client may leave an answer unread, of a stream or of all of them: it takes memory
  // from others.
  absl::Duration max_stall = absl::Minutes(5);
  // Within each such time it takes so much, or what waited for it when the time began: a client
  // that takes a byte now and then holds as much.
  int64_t min_bytes_per_second = 1024;

  // What a client that has `waiting` bytes to take owes within max_stall; at least one.
  int64_t OwedOf(int64_t waiting) const {
    const auto floor = static_cast<int64_t>(static_cast<double>(min_bytes_per_second) *
                                            absl::ToDoubleSeconds(max_stall));
    return std::clamp<int64_t>(floor, 1, std::max<int64_t>(1, waiting));
  }
};

// What a client did for which its connection is ended.
enum class ClientFault { kResets, kControlFrames, kHeaders, kProtocol };

class Connection final : public Pollable {
 public:
  // What a connection belongs to.
  struct Owner {
    StreamAcceptor& acceptor;
    const ConnectionLimits& limits;
    // Runs a step of a handshake on a thread that may take a millisecond; false: not now.
    std::function<bool(std::function<void()>)> run_handshake;
    // The connection is at its end: to be destroyed, but not within the call.
    std::function<void(Connection&)> ended;
    // Whether many clients may be behind it: then none is to suffer for the resets of another.
    std::function<bool(const Peer&)> shared = [](const Peer&) { return false; };
    // The client is told that the connection ends because of what it did.
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
  // Takes no call from now on; the connection ends with the last of those under way.
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
  enum class State { kHandshake, kOpen, kLingering, kEnded };

  struct AgeTimer final : Timer {
    explicit AgeTimer(Connection& connection) : connection(connection) {}
    void OnTime() override { connection.BeginGoAway(); }
    Connection& connection;
  };
  struct IdleTimer final : Timer {
    explicit IdleTimer(Connection& connection) : connection(connection) {}
    void OnTime() override { connection.OnIdle(); }
    Connection& connection;
  };
  // Looks for streams whose answers nobody reads.
  struct StallTimer final : Timer {
    explicit StallTimer(Connection& connection) : connection(connection) {}
    void OnTime() override { connection.EndStalledStreams(); }
    Connection& connection;
  };
  // Ends a connection that was told to go some time after the notice.
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
  // Frames what is to be sent, and sends what the socket takes.
  void Flush();
  // The same for a share of the turn, so that a client that takes large answers as fast as they
  // come does not keep others waiting; false when the connection has ended.
  bool SendShare();
  bool Frame();
  // What is asked for while it sends is sent with it.
  void WantFlush() {
    if (!flushing_) loop_.AtEndOfTurn(*this);
  }
  void Watch(uint32_t events);
  bool OutputFull() const { return output_.size() >= owner_.limits.max_output_bytes; }
  void OnIdle();
  // All is sent and nothing more is taken: waits for the client to see it.
  void Linger();
  void DropInput();
  void OnLingerTime();
  void EndStalledStreams();
  // Gives the client max_stall from now to take what it owes.
  void AwaitProgress();
  // Bytes that the socket holds yet: the client's system has not acknowledged them.
  int64_t Unacknowledged() const;
  // All that the client's has, counted from somewhere.
  int64_t Taken() const { return written_ - Unacknowledged(); }
  int64_t UnsentBytes() const;
  // The client's window lets nothing go: of what waits on all streams, or on one. A stream whose
  // own is open waits for others.
  bool IsShut() const;
  bool IsShut(const Http2Stream& stream) const;
  // Some stream has something to send.
  void WatchStalls();
  void NoteIdleness();
  // Begins to count anew when the second is over.
  void StartSecond();
  // Counts a frame that carries nothing; false when there are too many.
  bool CountControlFrame();
  // Counts a stream that the client resets; false when it does little else.
  bool CountReset(const Http2Stream& stream);
  // Tells the client why the connection ends; what nghttp2's callback returns to end it.
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
  State state_ = State::kHandshake;
  bool handshaking_elsewhere_ = false;
  // Known to epoll, and for what.
  bool added_ = false;
  uint32_t watched_ = 0;
  nghttp2_session* session_ = nullptr;
  absl::flat_hash_map<int32_t, std::unique_ptr<Http2Stream>> streams_;
  OutputQueue output_;
  bool write_blocked_ = false;
  // What the client had not acknowledged when it was looked at last, all being sent.
  int64_t unacknowledged_ = 0;
  // The poll of the last share of reading.
  absl::Time last_share_ = absl::InfinitePast();
  // Bytes that the socket took.
  int64_t written_ = 0;
  // What Taken must reach before the idle timer's time, while the connection is stalled.
  int64_t taken_goal_ = 0;
  bool flushing_ = false;
  // The client has sent a frame: it speaks HTTP/2.
  bool greeted_ = false;
  bool going_away_ = false;
  bool gone_away_ = false;
  // What the idle timer was set for last. Stalled: the socket is full, or the client's window is
  // shut, and something waits.
  bool stalled_ = false;
  bool idle_ = false;
  // In the session: it must not be asked to send, nor be destroyed.
  bool in_session_ = false;
  // End was called meanwhile.
  bool end_wanted_ = false;
  // Read and not fed yet, when the share of a turn was over.
  std::string input_;
  size_t input_used_ = 0;
  // Of the request whose headers are coming: blocks of headers come one after the other.
  RequestHead head_;
  // Calls that began since the session was fed last.
  int fed_calls_ = 0;
  // Of the block that is coming, requests' or trailers, with all that is dropped.
  size_t block_bytes_ = 0;
  // Counted since this second began.
  absl::Time second_ = absl::InfinitePast();
  int control_frames_ = 0;
  // What a GOAWAY with an error is sent for; of nghttp2's own it is this.
  ClientFault fault_ = ClientFault::kProtocol;
  size_t dropped_header_bytes_ = 0;
  ResetAllowance resets_;
  AgeTimer age_timer_;
  IdleTimer idle_timer_;
  GoAwayTimer go_away_timer_;
  StallTimer stall_timer_;
  // Lets a handshake step that is done elsewhere find out that the connection is gone.
  std::shared_ptr<Connection*> self_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_CONNECTION_H_
