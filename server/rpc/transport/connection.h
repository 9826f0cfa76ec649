// One HTTP/2 connection: an nghttp2 session between a channel and the handlers of streams.
//
// Guarantees: the memory that a client can occupy is bounded. Headers are stored for one request at
// a time, up to max_header_bytes. Bodies are bounded by the flow-control windows of the streams.
// Streams, frames and unread answers are bounded by ConnectionLimits::MaxHeldBytes: above this
// limit, no more input is read, and a client that does not read its answers is disconnected after
// MaxStall. A client that exceeds a limit loses its stream or its connection; the process
// continues. Not thread-safe: used on the loop's thread only, except for the handshake, which runs
// on a pool.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_CONNECTION_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_CONNECTION_H_

#include <malloc.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/thread/steady_time.h"
#include "server/rpc/transport/channel.h"
#include "server/rpc/transport/connection_limits.h"
#include "server/rpc/transport/event_loop.h"
#include "server/rpc/transport/peer.h"
#include "server/rpc/transport/stream.h"
#include "server/rpc/transport/timer_wheel.h"

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

class Connection;
class Http2Stream;

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
  // Whether a flow-control window of the client is closed. Without an argument: the connection's
  // window, if output waits for it. With a stream: the stream's own window. (A stream whose own
  // window is open only waits for other streams.)
  bool IsShut() const;
  bool IsShut(const Http2Stream& stream) const;

  Connection& connection_;
  // Bytes written to the socket.
  int64_t written_ = 0;
  // While the connection is stalled, the value that Taken must reach before the idle timer fires.
  int64_t taken_goal_ = 0;
  // While lingering, the result of Unacknowledged() at the last check.
  int64_t unacknowledged_ = 0;
  // State of the connection when the idle timer was last set. Stalled: output waits because the
  // socket is full or the client's window is closed.
  bool stalled_ = false;
  bool idle_ = false;
  IdleTimer idle_timer_;
  StreamTimer stream_timer_;
};

// An HTTP/2 stream of a connection. Used on the thread of its loop only.
class Http2Stream final : public Stream {
 public:
  Http2Stream(Connection& connection, int32_t id, absl::Time now)
      : connection_(connection), id_(id), began_(now) {}
  ~Http2Stream() override;

  EventLoop& loop() override;
  const Peer& peer() const override;
  void SetHandler(std::shared_ptr<StreamHandler> handler) override {
    handler_ = std::move(handler);
  }
  void SendHeaders(absl::Span<const Header> headers, bool end) override;
  void Send(std::shared_ptr<const OutputBytes> bytes) override;
  void SendTrailers(absl::Span<const Header> trailers) override;
  void Reset(ResetCode code) override;
  void EndConnection() override;
  absl::Time unread_since() const override {
    return body_.empty() ? absl::InfiniteFuture() : progress_;
  }
  size_t unsent_bytes() const override;
  void Consume(size_t bytes) override;
  void SetWindow(size_t bytes) override;
  void NoteAdmitted() override;

 private:
  friend class Connection;
  friend class StallWatch;
  struct OwnedHeader {
    std::string name;
    std::string value;
  };

  // Resets a stream if the client has not finished its request some time after the answer was
  // complete.
  struct LingerTimer final : Timer {
    explicit LingerTimer(Http2Stream& stream) : stream(stream) {}
    void OnTime() override { stream.Reset(ResetCode::kNoError); }
    Http2Stream& stream;
  };

  // Tells the handler that the stream is closed, and gives the client time to finish sending its
  // request. Called when the answer is complete but the request is not.
  void Linger();
  void Resume();
  // Moves the next `length` unsent bytes to `output`.
  void MoveBody(size_t length, OutputQueue& output);
  void SubmitTrailers();
  // Gives the client max_stall from now to read the required bytes (ConnectionLimits::OwedOf).
  void AwaitProgress();

  Connection& connection_;
  const int32_t id_;
  const absl::Time began_;
  std::shared_ptr<StreamHandler> handler_;
  // The unsent output, and the number of bytes of its first piece that have been sent.
  std::deque<std::shared_ptr<const OutputBytes>> body_;
  size_t sent_ = 0;
  // When output was last sent, or when output arrived in the empty body_.
  absl::Time progress_ = absl::InfinitePast();
  // Bytes that the client must still read within max_stall, counted from `owes_since_`.
  int64_t owed_ = 0;
  absl::Time owes_since_ = absl::InfinitePast();
  std::vector<OwnedHeader> trailers_;
  // Memory of the trailers, counted in Connection::trailer_bytes_.
  size_t trailer_bytes_ = 0;
  bool has_trailers_ = false;
  bool headers_sent_ = false;
  // True while nghttp2 waits for Resume, because there was nothing to send.
  bool deferred_ = false;
  bool request_ended_ = false;
  // The request's headers have arrived and the request was passed to the acceptor.
  bool begun_ = false;
  bool answered_ = false;
  bool reset_by_handler_ = false;
  LingerTimer linger_timer_{*this};
};

// An allocator for nghttp2 that counts what a session holds.
//
// Must outlive the session. Not thread-safe.
class CountedMemory {
 public:
  CountedMemory() : functions_{this, Malloc, Free, Calloc, Realloc} {}
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  nghttp2_mem* functions() { return &functions_; }
  // Bytes that the session holds, as malloc rounds them.
  size_t bytes() const { return bytes_; }
  // The most bytes that it has held.
  size_t peak_bytes() const { return peak_bytes_; }

 private:
  static CountedMemory& Of(void* user) { return *static_cast<CountedMemory*>(user); }
  static void* Malloc(size_t size, void* user) { return Of(user).Count(std::malloc(size)); }
  static void* Calloc(size_t count, size_t size, void* user) {
    return Of(user).Count(std::calloc(count, size));
  }
  static void Free(void* memory, void* user) {
    Of(user).bytes_ -= malloc_usable_size(memory);
    std::free(memory);
  }
  static void* Realloc(void* memory, size_t size, void* user) {
    const size_t before = malloc_usable_size(memory);
    void* const moved = std::realloc(memory, size);
    if (moved == nullptr) return nullptr;
    Of(user).bytes_ -= before;
    return Of(user).Count(moved);
  }
  void* Count(void* memory) {
    bytes_ += malloc_usable_size(memory);  // 0 for null
    peak_bytes_ = std::max(peak_bytes_, bytes_);
    return memory;
  }

  nghttp2_mem functions_;
  size_t bytes_ = 0;
  size_t peak_bytes_ = 0;
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

// Creates a session whose events go to `connection`, with its first SETTINGS frame queued. The
// session itself accepts any number of streams: nghttp2 would end the whole connection of a client
// that has acknowledged a limit and then exceeds it. `connection` resets such streams instead.
// Returns null if there is no memory. `memory` must outlive the session.
nghttp2_session* NewServerSession(Connection& connection, const ConnectionLimits& limits,
                                  CountedMemory& memory);
// Returns the first SETTINGS frame as sent to the client, with the real limit of streams; empty if
// there is no memory. Call it once, before any other output is taken from the session.
std::string FirstFrame(nghttp2_session* session, const ConnectionLimits& limits);

// The callback by which nghttp2 asks for the body of an answer. The source of the data is the
// Connection.
nghttp2_data_source_read_callback BodyReader();

// Why nghttp2 ends a connection with COMPRESSION_ERROR. It cannot tell an honest field that is too
// long from an attack, and it has then lost the state of the compression, which all later requests
// of the connection need.
inline constexpr absl::string_view kFieldUndecodable =
    "a header or metadata field is over 65536 bytes or wrongly compressed; the calls of this "
    "connection end with it";
// Returns `frame`, a frame of the session's output, with kFieldUndecodable as debug data if it is
// the GOAWAY with that error, for which nghttp2 gives no reason.
std::string Explained(absl::string_view frame);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_CONNECTION_H_
