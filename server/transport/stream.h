// One request and its answer, between the transport and the handler: bytes and headers, without
// their meaning.
//
// All of it happens on the thread of the connection's event loop.
#ifndef PHIMAP_SERVER_TRANSPORT_STREAM_H_
#define PHIMAP_SERVER_TRANSPORT_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/transport/event_loop.h"
#include "server/transport/output_bytes.h"
#include "server/transport/peer.h"

namespace phimap {

struct Header {
  absl::string_view name;
  absl::string_view value;
};

// Head of a request.
class RequestHead {
 public:
  void Add(absl::string_view name, absl::string_view value);

  size_t size() const { return places_.size(); }
  Header at(size_t i) const;
  // The first with this name; empty if there is none.
  absl::string_view Find(absl::string_view name) const;
  int Count(absl::string_view name) const;
  // Size by RFC 9113's count of a header list: names, values and 32 for each.
  size_t list_bytes() const { return text_.size() + 32 * places_.size(); }
  // The client sent more than the limit; the excess is not stored.
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

// Reason for which a stream ended, as HTTP/2 numbers it.
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

  // Bytes of the request's body came. The bytes stay in the client's window until Stream::Consume.
  virtual void OnData(absl::string_view bytes) = 0;
  // The client has sent everything.
  virtual void OnRequestEnd() = 0;
  // Everything that Send was given has left for the socket: there is room for more.
  virtual void OnSent() = 0;
  // The last call: the stream has ended, by itself (kNoError), by the client's reset or with its
  // connection.
  virtual void OnClosed(ResetCode code) = 0;
};

// The transport's side.
class Stream {
 public:
  virtual ~Stream() = default;

  virtual EventLoop& loop() = 0;
  virtual const Peer& peer() const = 0;
  // Sets the handler from now on; it is kept alive until OnClosed has returned.
  virtual void SetHandler(std::shared_ptr<StreamHandler> handler) = 0;

  // Answers, in this order: headers once, bytes, trailers once. Headers that end the stream need no
  // trailers.
  virtual void SendHeaders(absl::Span<const Header> headers, bool end) = 0;
  virtual void Send(std::shared_ptr<const OutputBytes> bytes) = 0;
  virtual void SendTrailers(absl::Span<const Header> trailers) = 0;
  // Ends the stream at once. OnClosed follows.
  virtual void Reset(ResetCode code) = 0;

  // Time since which the client has read nothing of the output; InfiniteFuture if there is none.
  virtual absl::Time unread_since() const = 0;

  // Lets the client send so many bytes more: REQUIRES that they came by OnData.
  virtual void Consume(size_t bytes) = 0;
  // Sets how many bytes the client may have sent that were not consumed.
  virtual void SetWindow(size_t bytes) = 0;
};

// Takes streams as their requests begin.
class StreamAcceptor {
 public:
  virtual ~StreamAcceptor() = default;
  // Either answers or gives the stream a handler. `ended` means that no body follows. Called on the
  // thread of any loop.
  virtual void OnRequest(Stream& stream, const RequestHead& head, bool ended) = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_STREAM_H_
