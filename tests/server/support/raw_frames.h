// HTTP/2 frames and header blocks built by hand, because no library would send them.
#ifndef PHIMAP_TESTS_SERVER_SUPPORT_RAW_FRAMES_H_
#define PHIMAP_TESTS_SERVER_SUPPORT_RAW_FRAMES_H_

#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace phimap::testing {

inline std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  std::string frame;
  for (int shift = 16; shift >= 0; shift -= 8) frame += static_cast<char>(payload.size() >> shift);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(stream >> shift);
  return frame + payload;
}

// Encodes a string as described in RFC 7541, section 5.2, without Huffman coding.
inline std::string HpackText(const std::string& text) {
  if (text.size() < 127) return static_cast<char>(text.size()) + text;
  std::string coded(1, '\x7f');
  size_t rest = text.size() - 127;
  for (; rest >= 128; rest /= 128) coded += static_cast<char>(rest % 128 + 128);
  return coded + static_cast<char>(rest) + text;
}

// Encodes a header field literally. The receiver does not add it to the dynamic table.
inline std::string Literal(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + HpackText(name) + HpackText(value);
}

// Encodes a header field that the receiver adds to its dynamic table. kNewest refers to this field
// until another one is added.
inline std::string Indexed(const std::string& name, const std::string& value) {
  return '\x40' + HpackText(name) + HpackText(value);
}
constexpr char kNewest = '\xbe';

inline std::string UsualHeaders(const std::string& path) {
  return Literal(":method", "POST") + Literal(":scheme", "http") + Literal(":path", path) +
         Literal(":authority", "test");
}
// The size of UsualHeaders as RFC 9113 counts it: the lengths of names and values, plus 32 bytes
// for each field.
inline size_t UsualHeaderBytes(const std::string& path) {
  return 7 + 4 + 7 + 4 + 5 + path.size() + 10 + 4 + 4 * 32;
}

class RawFrameClient {
 public:
  struct Got {
    uint8_t type;
    uint32_t stream;
    std::string payload;
  };

  // Owns `fd`.
  explicit RawFrameClient(int fd) : fd_(fd) {
    Send(NGHTTP2_CLIENT_MAGIC + Frame(NGHTTP2_SETTINGS, 0, 0, ""));
  }
  ~RawFrameClient() { close(fd_); }
  RawFrameClient(const RawFrameClient&) = delete;
  RawFrameClient& operator=(const RawFrameClient&) = delete;

  // Sends `bytes`, unless the server hangs up meanwhile.
  void Send(const std::string& bytes) const {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t some = send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (some <= 0) return;
      sent += static_cast<size_t>(some);
    }
  }
  void Headers(uint32_t stream, const std::string& block, bool end = false) const {
    Send(Frame(NGHTTP2_HEADERS, EndFlags(end), stream, block));
  }

  // Sends a ping, and receives all frames until its answer. Returns false if the server hangs up
  // first.
  bool RoundTrip() {
    Send(Frame(NGHTTP2_PING, 0, 0, "12345678"));
    while (Receive()) {
      if (got_.back().type == NGHTTP2_PING) return true;
      const bool settings = got_.back().type == NGHTTP2_SETTINGS;
      if (settings && !got_.back().payload.empty()) {
        Send(Frame(NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, ""));
      }
    }
    return false;
  }
  // Receives frames until `count` of this type have come in all. Returns false if the server hangs
  // up first.
  bool Await(uint8_t type, size_t count) {
    const auto is_of_type = [type](const Got& got) { return got.type == type; };
    auto left =
        static_cast<std::ptrdiff_t>(count) - std::count_if(got_.begin(), got_.end(), is_of_type);
    for (; left > 0; left -= is_of_type(got_.back()) ? 1 : 0) {
      if (!Receive()) return false;
    }
    return true;
  }
  // The error code of the first frame of this type and stream, or -1 if there was none. `type` is
  // RST_STREAM, or GOAWAY with stream 0.
  int Error(uint8_t type, uint32_t stream) const {
    for (const Got& got : got_) {
      if (got.type == type && got.stream == stream) {
        return static_cast<uint8_t>(got.payload[type == NGHTTP2_GOAWAY ? 7 : 3]);
      }
    }
    return -1;
  }
  int ResetOf(uint32_t stream) const { return Error(NGHTTP2_RST_STREAM, stream); }
  int GoAway() const { return Error(NGHTTP2_GOAWAY, 0); }
  const std::vector<Got>& got() const { return got_; }

 private:
  static uint8_t EndFlags(bool end) {
    return static_cast<uint8_t>(NGHTTP2_FLAG_END_HEADERS | (end ? NGHTTP2_FLAG_END_STREAM : 0));
  }
  bool Read(std::string& into, size_t size) const {
    into.resize(size);
    return size == 0 || recv(fd_, into.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size);
  }
  bool Receive() {
    std::string head;
    if (!Read(head, 9)) return false;
    const auto byte = [&](size_t i) {
      return static_cast<uint32_t>(static_cast<uint8_t>(head[i]));
    };
    Got got{
        .type = static_cast<uint8_t>(byte(3)), .stream = (byte(7) << 8) | byte(8), .payload = ""};
    if (!Read(got.payload, (byte(0) << 16) | (byte(1) << 8) | byte(2))) return false;
    got_.push_back(std::move(got));
    return true;
  }

  const int fd_;
  std::vector<Got> got_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_SUPPORT_RAW_FRAMES_H_
