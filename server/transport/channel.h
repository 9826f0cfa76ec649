// The bytes of a connection, unencrypted or over TLS.
//
// No function blocks. Not thread-safe, but different threads may use it one after the other.
#ifndef PHIMAP_SERVER_TRANSPORT_CHANNEL_H_
#define PHIMAP_SERVER_TRANSPORT_CHANNEL_H_

#include <cstddef>
#include <memory>
#include <string>

#include "server/transport/output_queue.h"
#include "server/transport/peer.h"

typedef struct ssl_st SSL;

namespace phimap {

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
};

// Owns `fd`. Throws std::bad_alloc; `fd` then stays with the caller.
std::unique_ptr<Channel> PlainChannel(int fd);
// Owns `fd` and `ssl`, which may be null. Returns null if there is no memory, or no `ssl`; `fd`
// then stays with the caller.
std::unique_ptr<Channel> TlsChannel(int fd, SSL* ssl);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_CHANNEL_H_
