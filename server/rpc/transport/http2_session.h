// HTTP/2 on one connection, by nghttp2.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_HTTP2_SESSION_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_HTTP2_SESSION_H_

#include <malloc.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/rpc/transport/connection.h"
#include "server/rpc/transport/connection_limits.h"
#include "server/rpc/transport/session.h"
#include "server/rpc/transport/stream.h"
#include "server/rpc/transport/timer_wheel.h"

namespace phimap {

class Http2Session;

// An HTTP/2 stream of a connection. Used on the thread of its loop only.
class Http2Stream final : public Stream {
 public:
  Http2Stream(Http2Session& session, Connection& connection, int32_t id, absl::Time now)
      : session_(session), connection_(connection), id_(id), began_(now) {}
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
  size_t unsent_bytes() const override { return body_.bytes(); }
  void Consume(size_t bytes) override;
  void SetWindow(size_t bytes) override;
  void NoteAdmitted() override;

 private:
  friend class Http2Session;
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

  Http2Session& session_;
  Connection& connection_;
  const int32_t id_;
  const absl::Time began_;
  std::shared_ptr<StreamHandler> handler_;
  UnsentAnswer body_;
  // When output was last sent, or when output arrived in the empty body_.
  absl::Time progress_ = absl::InfinitePast();
  // Bytes that the client must still read within max_stall, counted from `owes_since_`.
  int64_t owed_ = 0;
  absl::Time owes_since_ = absl::InfinitePast();
  std::vector<OwnedHeader> trailers_;
  // Memory of the trailers, counted in Http2Session::trailer_bytes_.
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

class Http2Session final : public Session {
 public:
  // Returns a session of `connection`, which it must not outlive, with its first frame in the
  // connection's output; null if there is no memory.
  static std::unique_ptr<Http2Session> Open(Connection& connection);
  ~Http2Session() override;
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;

  Fed Feed(absl::string_view bytes) override;
  bool Frame() override;
  bool blocked() const override { return false; }
  bool wants_write() const override { return nghttp2_session_want_write(session_) != 0; }
  bool over() const override {
    return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
  }
  void AnnounceEnd() override { Require(nghttp2_submit_shutdown_notice(session_)); }
  void RefuseCalls() override;
  void EndForFault(ClientFault fault, absl::string_view why) override { EndFlood(fault, why); }
  void CloseStreams() override;
  size_t streams() const override { return streams_.size(); }
  size_t unsent_bytes() const override;
  size_t held_bytes() const override;
  size_t peak_bytes() const override { return std::max(memory_.peak_bytes(), held_bytes()); }
  bool IsShut() const override { return nghttp2_session_get_remote_window_size(session_) <= 0; }
  bool EndStalledStreams(absl::Time before, bool stalled) override;

 private:
  friend class Http2Stream;
  friend struct SessionCallbacks;

  explicit Http2Session(Connection& connection);
  // The callback by which nghttp2 asks for the body of an answer.
  static nghttp2_data_source_read_callback BodyReader();
  // Takes what a function of nghttp2 returned. If it had no memory, the connection will end.
  void Require(int result);
  // Whether the answer of `stream` has begun, or the stream is older than kLongLived.
  bool IsAnswered(const Http2Stream& stream) const;
  // Whether the client's window of this stream is closed. A stream whose own window is open only
  // waits for other streams.
  bool IsShut(const Http2Stream& stream) const;
  // Tells the client why the connection ends, which it does when the reason is sent. Returns the
  // value that makes nghttp2 end the session when a callback returns it.
  int EndFlood(ClientFault fault, absl::string_view why);
  // Counts the reset of a stream, by either side because of what the client sent. `stream` is null
  // if the stream was refused. Returns false if there were too many.
  bool CountReset(const Http2Stream* stream);
  // Counts a call that was refused. Returns what a callback of nghttp2 returns.
  int CountRefused();
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

  Connection& connection_;
  const ConnectionLimits& limits_;
  FloodGuard flood_guard_;
  CountedMemory memory_;
  nghttp2_session* session_ = nullptr;
  // Memory of all streams' trailers.
  size_t trailer_bytes_ = 0;
  std::unordered_map<int32_t, std::unique_ptr<Http2Stream>> streams_;
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
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_HTTP2_SESSION_H_
