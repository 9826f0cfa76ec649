#include "server/rpc/transport/channel.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace phimap {

namespace {

// Maximum size of a piece into which small pieces are copied.
constexpr size_t kPieceBytes = 16384;

}  // namespace

void OutputQueue::Append(absl::string_view bytes) {
  size_ += bytes.size();
  const bool fits = !pieces_.empty() && pieces_.back().owner == nullptr &&
                    pieces_.back().copy.size() + bytes.size() <= kPieceBytes;
  if (!fits) {
    pieces_.emplace_back();
    pieces_.back().copy = std::move(spare_);
    spare_ = std::string();
    pieces_.back().copy.clear();
  }
  pieces_.back().copy.append(bytes.data(), bytes.size());
}

void OutputQueue::Append(std::shared_ptr<const OutputBytes> owner, absl::string_view bytes) {
  if (bytes.size() < kCopiedBytes) return Append(bytes);
  size_ += bytes.size();
  pieces_.push_back({std::move(owner), std::string(), bytes});
}

int OutputQueue::Front(absl::Span<iovec> pieces) const {
  const size_t count = std::min(pieces.size(), pieces_.size());
  for (size_t i = 0; i < count; ++i) {
    absl::string_view bytes = pieces_[i].bytes();
    if (i == 0) bytes.remove_prefix(sent_);
    pieces[i] = {const_cast<char*>(bytes.data()), bytes.size()};
  }
  return static_cast<int>(count);
}

void OutputQueue::Pop(size_t bytes) {
  size_ -= bytes;
  sent_ += bytes;
  while (!pieces_.empty() && sent_ >= pieces_.front().bytes().size()) {
    sent_ -= pieces_.front().bytes().size();
    if (pieces_.front().owner == nullptr) spare_ = std::move(pieces_.front().copy);
    pieces_.pop_front();
  }
}

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
