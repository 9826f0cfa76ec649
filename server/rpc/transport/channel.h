// The bytes of a connection, unencrypted or over TLS.
//
// No function blocks. Not thread-safe, but different threads may use it one after the other.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_CHANNEL_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_CHANNEL_H_

#include <sys/uio.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "server/rpc/transport/peer.h"
#include "server/rpc/transport/stream.h"

typedef struct ssl_st SSL;

namespace phimap {

// Output of a connection. Small pieces are copied into the queue; large pieces are referenced.
//
// Not thread-safe.
class OutputQueue {
 public:
  // Pieces smaller than this are copied, because holding a reference would cost more.
  static constexpr size_t kCopiedBytes = 4096;

  void Append(absl::string_view bytes);
  // `bytes` must be part of `owner`'s bytes.
  void Append(std::shared_ptr<const OutputBytes> owner, absl::string_view bytes);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Fills `pieces` from the front of the queue; returns the number of pieces filled.
  int Front(absl::Span<iovec> pieces) const;
  // Removes the first `bytes` bytes, once they are sent.
  void Pop(size_t bytes);

 private:
  struct Piece {
    std::shared_ptr<const OutputBytes> owner;
    // If `owner` is null, the bytes are in `copy`. Otherwise `shared` refers to bytes of `owner`.
    std::string copy;
    absl::string_view shared;
    absl::string_view bytes() const { return owner == nullptr ? absl::string_view(copy) : shared; }
  };
  std::deque<Piece> pieces_;
  // Bytes of the first piece that have been sent.
  size_t sent_ = 0;
  size_t size_ = 0;
  // A string that has been sent, kept so that its allocation can be reused.
  std::string spare_;
};

// A failed handshake of TLS.
struct HandshakeFailure {
  // The label of the counter: "not_tls", "no_certificate", "certificate", "no_http2" or "other".
  const char* kind = nullptr;
  // For the log, in OpenSSL's words.
  std::string why;
};

class Channel {
 public:
  enum class State {
    kDone,        // the operation is complete
    kWantsRead,   // retry when the socket is readable
    kWantsWrite,  // retry when the socket is writable
    kClosed,      // closed by the peer or by an error
    kFlooded,     // the peer sends TLS records without data one after another
    kDistrusted,  // the peer's certificate has expired or was revoked since the handshake
  };
  struct Result {
    State state;
    size_t bytes = 0;
  };

  virtual ~Channel() = default;

  int fd() const { return fd_; }

  // Performs one step of the handshake. A step may take a millisecond of CPU time. When the
  // handshake is done, fills in the fields of `peer` that depend on the client's certificate.
  virtual State Handshake(Peer& peer) = 0;
  // Why the handshake failed; empty if it has not failed, or if the peer only closed the
  // connection.
  const HandshakeFailure& handshake_failure() const { return handshake_failure_; }
  virtual bool needs_handshake() const = 0;
  // Whether the peer has chosen HTTP/2 in the handshake.
  bool chose_http2() const { return chose_http2_; }
  // Reads at most `size` bytes.
  virtual Result Read(char* data, size_t size) = 0;
  // Sends from the front of `queue` as much as the socket accepts, and removes it from the queue.
  virtual State Write(OutputQueue& queue) = 0;
  // Whether the channel has read bytes from the socket that Read has not returned yet. epoll does
  // not report these bytes, because they are no longer in the socket.
  virtual bool has_buffered() const = 0;
  // Tells the peer that no more bytes follow.
  virtual void Shutdown() = 0;

 protected:
  explicit Channel(int fd) : fd_(fd) {}
  const int fd_;
  HandshakeFailure handshake_failure_;
  bool chose_http2_ = false;
};

// Owns `fd`. Throws std::bad_alloc; `fd` then stays with the caller.
std::unique_ptr<Channel> PlainChannel(int fd);
// Owns `fd` and `ssl`, which may be null. Returns null if there is no memory, or no `ssl`; `fd`
// then stays with the caller.
std::unique_ptr<Channel> TlsChannel(int fd, SSL* ssl);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_CHANNEL_H_
