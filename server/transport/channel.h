// The bytes of a connection, in the clear or by TLS.
//
// Neither kind ever blocks. Not thread-safe: one thread at a time.
#ifndef PHIMAP_SERVER_TRANSPORT_CHANNEL_H_
#define PHIMAP_SERVER_TRANSPORT_CHANNEL_H_

#include <cstddef>
#include <memory>

#include "server/transport/output_queue.h"
#include "server/transport/peer.h"

typedef struct ssl_st SSL;

namespace phimap {

class Channel {
 public:
  enum class State {
    kDone,        // as much as there was
    kWantsRead,   // later, when the socket is readable
    kWantsWrite,  // later, when it is writable
    kClosed,      // by the other end, or by an error
  };
  struct Result {
    State state;
    size_t bytes = 0;
  };

  virtual ~Channel() = default;

  int fd() const { return fd_; }

  // A step of the handshake. The handshake may take a millisecond of computing. Fills in its facts
  // about the peer.
  virtual State Handshake(Peer& peer) = 0;
  virtual bool needs_handshake() const = 0;
  // Reads at most `size` bytes.
  virtual Result Read(char* data, size_t size) = 0;
  // Sends from the front of `queue` as much as the socket takes, and removes it there.
  virtual State Write(OutputQueue& queue) = 0;
  // Bytes that were read from the socket and that Read has not given yet: nothing will be readable
  // for them.
  virtual bool has_buffered() const = 0;
  // Tells the other end that nothing more comes.
  virtual void Shutdown() = 0;

 protected:
  explicit Channel(int fd) : fd_(fd) {}
  const int fd_;
};

// Owns `fd`.
std::unique_ptr<Channel> PlainChannel(int fd);
// Owns both.
std::unique_ptr<Channel> TlsChannel(int fd, SSL* ssl);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_CHANNEL_H_
