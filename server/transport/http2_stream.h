// An HTTP/2 stream of a connection.
//
// Not thread-safe: used on the loop's thread only.
#ifndef PHIMAP_SERVER_TRANSPORT_HTTP2_STREAM_H_
#define PHIMAP_SERVER_TRANSPORT_HTTP2_STREAM_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "server/transport/output_queue.h"
#include "server/transport/stream.h"
#include "server/transport/timer_wheel.h"

namespace phimap {

class Connection;

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

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_HTTP2_STREAM_H_
