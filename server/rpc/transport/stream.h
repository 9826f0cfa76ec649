// Interfaces between the transport and the handler of a request: headers and bytes of the request
// and its answer, without their meaning.
//
// Everything here happens on the thread of the connection's event loop.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_STREAM_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/rpc/transport/event_loop.h"
#include "server/rpc/transport/peer.h"

namespace phimap {

// Bytes that are sent without a copy where possible. The object is kept until the last byte has
// been handed to the socket or copied. A derived class may own resources that must be held until
// then, such as a share of a memory budget.
class OutputBytes {
 public:
  virtual ~OutputBytes() = default;
  // Returns the same bytes at the same address on every call.
  virtual absl::string_view bytes() const = 0;
};

// A text as bytes.
class OutputText final : public OutputBytes {
 public:
  explicit OutputText(std::string text) : text_(std::move(text)) {}
  absl::string_view bytes() const override { return text_; }

 private:
  const std::string text_;
};

struct Header {
  absl::string_view name;
  absl::string_view value;
};

// The headers of a request.
class RequestHead {
 public:
  void Add(absl::string_view name, absl::string_view value);

  size_t size() const { return places_.size(); }
  Header at(size_t i) const;
  // Value of the first header with this name; empty if there is none.
  absl::string_view Find(absl::string_view name) const;
  int Count(absl::string_view name) const;
  // Bytes that a field is counted for in addition to its name and value, as RFC 9113 does.
  static constexpr size_t kFieldBytes = 32;
  size_t list_bytes() const { return text_.size() + kFieldBytes * places_.size(); }
  // The client sent more header bytes than the limit. The excess is not stored.
  bool too_large = false;

 private:
  struct Place {
    uint32_t begin;
    uint32_t name_size;
    uint32_t value_size;
  };
  std::string text_;
  std::vector<Place> places_;
};

// HTTP/2 error code with which a stream ended.
enum class ResetCode : uint32_t {
  kNoError = 0,
  kProtocolError = 1,
  kInternalError = 2,
  kFlowControlError = 3,
  kRefusedStream = 7,
  kCancel = 8,
  kEnhanceYourCalm = 11,
};

// Receives the events of a stream.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;

  // Called when bytes of the request's body have arrived. The bytes count against the client's
  // window until Stream::Consume.
  virtual void OnData(absl::string_view bytes) = 0;
  // Called when the client has sent the whole request.
  virtual void OnRequestEnd() = 0;
  // Called when all bytes passed to Send have moved to the connection's output. More may be sent
  // now.
  virtual void OnSent() = 0;
  // Called last, when the stream has ended: normally (kNoError), by a reset or with its connection.
  virtual void OnClosed(ResetCode code) = 0;
};

// The transport's side of a stream.
class Stream {
 public:
  virtual ~Stream() = default;

  virtual EventLoop& loop() = 0;
  virtual const Peer& peer() const = 0;
  // Sets the handler. It is kept alive until OnClosed has returned.
  virtual void SetHandler(std::shared_ptr<StreamHandler> handler) = 0;

  // Send the answer, in this order: headers once, bytes, trailers once. If `end` is true, the
  // headers are the whole answer.
  virtual void SendHeaders(absl::Span<const Header> headers, bool end) = 0;
  virtual void Send(std::shared_ptr<const OutputBytes> bytes) = 0;
  virtual void SendTrailers(absl::Span<const Header> trailers) = 0;
  // Ends the stream at once. OnClosed follows.
  virtual void Reset(ResetCode code) = 0;
  // Ends the connection, with all its calls. For a call that finds no memory for its status. Needs
  // no memory. OnClosed follows.
  virtual void EndConnection() = 0;

  // Time since which the client has read nothing of the waiting output; InfiniteFuture if no output
  // waits.
  virtual absl::Time unread_since() const = 0;
  // Bytes passed to Send that have not moved to the connection's output.
  virtual size_t unsent_bytes() const = 0;

  // Lets the client send `bytes` more bytes. REQUIRES: at least `bytes` bytes have arrived by
  // OnData and have not been consumed yet.
  virtual void Consume(size_t bytes) = 0;
  // Tells the connection that a call of it was admitted. Its limits are wider from then on.
  virtual void NoteAdmitted() = 0;
  // Sets the window: the maximum number of bytes sent by the client but not consumed.
  virtual void SetWindow(size_t bytes) = 0;
};

// Receives each stream when its request begins.
class StreamAcceptor {
 public:
  virtual ~StreamAcceptor() = default;
  // Must either answer or set the stream's handler. `ended`: no body follows. Called on any loop's
  // thread.
  virtual void OnRequest(Stream& stream, const RequestHead& head, bool ended) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_STREAM_H_
