// What a connection speaks: HTTP/2 (http2_session.h) or HTTP/1.1 (http1_session.h).
//
// A session turns the bytes of a client into streams, and the answers of streams into bytes. It
// neither reads nor writes the socket: its connection does (connection.h). Used on the loop's
// thread only.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_SESSION_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/rpc/transport/channel.h"
#include "server/rpc/transport/stream.h"

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
  kProxyHeader,
  kCertificate,
};

class Session {
 public:
  struct Fed {
    enum class End {
      kNone,
      // The connection ends when what the session has for the client is sent.
      kFailed,
      // The bytes are of another protocol; nothing of the session is sent.
      kOtherProtocol,
    };
    // How many bytes were used. Fewer than all if the session has begun its share of calls, or
    // waits for a handler.
    size_t used = 0;
    End end = End::kNone;
  };

  virtual ~Session() = default;

  // Takes bytes of the client, and calls the handlers that they concern.
  virtual Fed Feed(absl::string_view bytes) = 0;
  // Moves what is to be sent to the connection's output, until that is full. Returns false if the
  // connection must end.
  virtual bool Frame() = 0;
  // Whether the session waits for its handlers and should be fed no more bytes.
  virtual bool blocked() const = 0;
  // Whether a request has begun of which not even the head is complete.
  virtual bool holds_half_head() const { return false; }
  // Whether the session has more for the client than Frame has moved.
  virtual bool wants_write() const = 0;
  // Whether nothing more will be read or sent.
  virtual bool over() const = 0;

  // Asks the client to begin new calls elsewhere. They are still accepted.
  virtual void AnnounceEnd() = 0;
  // Accepts no call from now on.
  virtual void RefuseCalls() = 0;
  // Tells the client, as far as the protocol can, why its connection ends. The connection ends when
  // that is sent.
  virtual void EndForFault(ClientFault fault, absl::string_view why) = 0;
  // Tells the handlers of all streams that these are closed, and drops the streams.
  virtual void CloseStreams() = 0;

  // Streams that are open.
  virtual size_t streams() const = 0;
  // Bytes of answers that Frame has not moved.
  virtual size_t unsent_bytes() const = 0;
  // Bytes that the session holds, without those that its connection holds for it; and the most that
  // it has held of them, as far as it knows.
  virtual size_t held_bytes() const = 0;
  virtual size_t peak_bytes() const { return held_bytes(); }
  // Whether the client's window for all answers is closed.
  virtual bool IsShut() const { return false; }
  // Ends streams whose answers the client has left unread since `before`. `stalled`: the client
  // reads nothing of the connection either. Returns whether answers of others wait.
  virtual bool EndStalledStreams(absl::Time before, bool stalled) {
    static_cast<void>(before), static_cast<void>(stalled);
    return false;
  }
};

// The bytes of an answer that have not been moved to the connection's output.
class UnsentAnswer {
 public:
  bool empty() const { return pieces_.empty(); }
  size_t bytes() const {
    size_t bytes = 0;
    for (const auto& piece : pieces_) bytes += piece->bytes().size();
    return bytes - moved_;
  }
  void Add(std::shared_ptr<const OutputBytes> bytes) { pieces_.push_back(std::move(bytes)); }
  // Moves the next `length` bytes to `output`. REQUIRES: there are so many.
  void Move(size_t length, OutputQueue& output) {
    while (length > 0) {
      const std::shared_ptr<const OutputBytes>& first = pieces_.front();
      const absl::string_view bytes = first->bytes().substr(moved_, length);
      output.Append(first, bytes);
      length -= bytes.size();
      moved_ += bytes.size();
      if (moved_ == first->bytes().size()) {
        pieces_.pop_front();
        moved_ = 0;
      }
    }
  }

 private:
  std::deque<std::shared_ptr<const OutputBytes>> pieces_;
  // Bytes of the first piece that have been moved.
  size_t moved_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_SESSION_H_
