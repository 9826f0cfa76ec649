#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "server/transport/channel.h"

namespace phimap {
namespace {

class Plain final : public Channel {
 public:
  explicit Plain(int fd) : Channel(fd) {}
  ~Plain() override { close(fd_); }

  State Handshake(Peer&) override { return State::kDone; }
  bool needs_handshake() const override { return false; }
  bool has_buffered() const override { return false; }
  void Shutdown() override { shutdown(fd_, SHUT_WR); }

  Result Read(char* data, size_t size) override {
    const ssize_t got = recv(fd_, data, size, 0);
    if (got > 0) return {State::kDone, static_cast<size_t>(got)};
    if (got == 0) return {State::kClosed};
    return {errno == EAGAIN || errno == EINTR ? State::kWantsRead : State::kClosed};
  }

  State Write(OutputQueue& queue) override {
    while (!queue.empty()) {
      std::array<iovec, 64> pieces;
      msghdr message = {};
      message.msg_iov = pieces.data();
      message.msg_iovlen = static_cast<size_t>(queue.Front(absl::MakeSpan(pieces)));
      const ssize_t sent = sendmsg(fd_, &message, MSG_NOSIGNAL);
      if (sent < 0) {
        if (errno == EINTR) continue;
        return errno == EAGAIN ? State::kWantsWrite : State::kClosed;
      }
      queue.Pop(static_cast<size_t>(sent));
    }
    return State::kDone;
  }
};

}  // namespace

std::unique_ptr<Channel> PlainChannel(int fd) { return std::make_unique<Plain>(fd); }

}  // namespace phimap
