// HTTP/1.1 on one connection, by http-parser: one request after the other.
//
// Strict where a proxy in front may read a request otherwise than this server: a request with two
// lengths, two hosts, a line that does not end with CR LF or that goes on with the one before, a
// broken head or broken chunks is answered with 400, and its connection ends. Requests that a
// client sends before it has its answer wait. A body's bytes count against a window, as in
// HTTP/2: above it, the socket is not read.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_HTTP1_SESSION_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_HTTP1_SESSION_H_

#include <http_parser.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/rpc/transport/connection.h"
#include "server/rpc/transport/session.h"
#include "server/rpc/transport/stream.h"

namespace phimap {

class Http1Session;

// A request and its answer. Used on the thread of its loop only.
class Http1Stream final : public Stream {
 public:
  Http1Stream(Http1Session& session, Connection& connection)
      : session_(session), connection_(connection) {}

  EventLoop& loop() override { return connection_.loop(); }
  const Peer& peer() const override { return connection_.peer(); }
  void SetHandler(std::shared_ptr<StreamHandler> handler) override {
    handler_ = std::move(handler);
  }
  // Without the header content-length, the bytes are sent in chunks, or, to a client of HTTP/1.0,
  // up to the end of the connection.
  void SendHeaders(absl::Span<const Header> headers, bool end) override;
  void Send(std::shared_ptr<const OutputBytes> bytes) override;
  // Ends the answer. The trailers themselves are not sent: clients of HTTP/1.1 ignore them.
  void SendTrailers(absl::Span<const Header> trailers) override;
  // Ends the connection, since nothing else tells the client that its answer is not complete.
  void Reset(ResetCode code) override;
  void EndConnection() override;
  absl::Time unread_since() const override {
    return body_.empty() ? absl::InfiniteFuture() : progress_;
  }
  size_t unsent_bytes() const override { return body_.bytes(); }
  void Consume(size_t bytes) override;
  void NoteAdmitted() override { connection_.NoteAdmitted(); }
  void SetWindow(size_t bytes) override { window_ = bytes; }

 private:
  friend class Http1Session;
  enum class Framing { kLength, kChunks, kUntilEnd };

  Http1Session& session_;
  Connection& connection_;
  std::shared_ptr<StreamHandler> handler_;
  // Head of the answer, but for what it says of the connection, until it is sent.
  std::string head_;
  UnsentAnswer body_;
  // When bytes were last moved to the output, or when bytes came into the empty body_.
  absl::Time progress_ = absl::InfinitePast();
  Framing framing_ = Framing::kLength;
  // Bytes of the request's body that the handler has not consumed, and how many there may be.
  size_t unconsumed_ = 0;
  size_t window_;
  bool is_head_request_ = false;
  bool http_1_0_ = false;
  bool headers_sent_ = false;
  // Nothing is added to the answer any more.
  bool answer_complete_ = false;
  bool request_ended_ = false;
};

// Lines of a head as they arrive. Debian builds http-parser so that it also takes lines that end
// with LF alone, and folded ones, which others may read otherwise (RFC 9112, sections 2.2 and 5.2).
class HeadLines {
 public:
  // `begun`: the request's first line was before, so that a blank one ends the lines.
  explicit HeadLines(bool begun = false) : begun_(begun) {}

  // Reads to the end of the head. Returns how many of `bytes` belong to it; nullopt at a line that
  // is refused.
  std::optional<size_t> Take(absl::string_view bytes);
  // Whether a line has begun and the head is not over.
  bool half() const { return !over_ && (begun_ || line_bytes_ > 0); }
  bool over() const { return over_; }

 private:
  char last_ = '\n';
  size_t line_bytes_ = 0;
  // Blank lines before a request are no part of its head.
  bool begun_;
  bool over_ = false;
};

// The framing of a body in chunks as it arrives, of which http-parser does not look at each byte:
// CR LF behind each size and behind the data, no control characters in extensions, and trailers as
// in a head. Extensions and trailers are dropped.
class ChunkFraming {
 public:
  // `max_dropped_bytes`: of all extensions and trailers.
  explicit ChunkFraming(size_t max_dropped_bytes) : dropped_bytes_left_(max_dropped_bytes) {}

  // Reads to the end of the body. Returns false at a byte that is refused.
  bool Take(absl::string_view bytes);

 private:
  enum class Part { kSize, kExtension, kSizeEnd, kData, kDataEnd, kDataLineEnd, kTrailers };

  Part part_ = Part::kSize;
  int digits_ = 0;
  uint64_t left_ = 0;
  HeadLines trailers_{/*begun=*/true};
  size_t dropped_bytes_left_;
};

class Http1Session final : public Session {
 public:
  explicit Http1Session(Connection& connection);
  Http1Session(const Http1Session&) = delete;
  Http1Session& operator=(const Http1Session&) = delete;

  Fed Feed(absl::string_view bytes) override;
  bool Frame() override;
  bool blocked() const override;
  bool wants_write() const override { return stream_ != nullptr && !stream_->body_.empty(); }
  bool over() const override { return over_ && stream_ == nullptr; }
  bool holds_half_head() const override { return stream_ == nullptr && lines_.half(); }
  void AnnounceEnd() override { closing_ = true; }
  void RefuseCalls() override;
  void EndForFault(ClientFault fault, absl::string_view why) override;
  void CloseStreams() override;
  size_t streams() const override { return stream_ == nullptr ? 0 : 1; }
  size_t unsent_bytes() const override { return stream_ == nullptr ? 0 : stream_->unsent_bytes(); }
  size_t held_bytes() const override;

 private:
  friend class Http1Stream;
  struct Callbacks;

  // http-parser's callbacks. They return 0 to go on.
  int OnBegin();
  int OnUrl(absl::string_view part);
  int OnField(absl::string_view part);
  int OnValue(absl::string_view part);
  int OnHead();
  int OnBody(absl::string_view bytes);
  int OnEnd();

  // Adds the field that is complete to the head.
  void AddField();
  // Whether so many more bytes of the head are kept.
  bool HasRoom(size_t bytes);
  // Answers a request that cannot be understood, unless its answer has begun. The connection ends
  // after that. Returns what stops the parser.
  int Refuse(absl::string_view status, absl::string_view why);
  // Ends the exchange whose answer is sent: the next request may follow.
  void FinishExchange();
  // Tells the handler, if there still is one, that its stream is closed.
  void CloseStream(ResetCode code);

  Connection& connection_;
  http_parser parser_;
  // The head that is arriving.
  HeadLines lines_;
  // The framing of the body that is arriving, if it comes in chunks.
  std::optional<ChunkFraming> chunks_;
  RequestHead head_;
  std::string path_;
  std::string field_;
  std::string value_;
  bool value_began_ = false;
  // Whether the names so far have only characters of names.
  bool names_valid_ = true;
  // The request that is arriving or being answered; null between two.
  std::unique_ptr<Http1Stream> stream_;
  // The connection ends after this answer: the client or the server wants it, or the request was
  // not read to its end.
  bool closing_;
  // Nothing more is read.
  bool over_ = false;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_HTTP1_SESSION_H_
