// A client that sends whatever frames a test wants: well-behaved clients never send most of them.
//
// It runs on the test's thread, and only within RunUntil: what the server has to say waits in the
// socket until then.
#ifndef PHIMAP_TESTS_SERVER_SUPPORT_RAW_HTTP2_CLIENT_H_
#define PHIMAP_TESTS_SERVER_SUPPORT_RAW_HTTP2_CLIENT_H_

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace phimap::testing {

class RawHttp2Client {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  struct Options {
    // Bytes that the server may send on a stream, and on all, before they are consumed.
    int32_t stream_window = 65535;
    int32_t connection_window = 1 << 24;
    // Whether data is consumed as it comes; otherwise windows stay as they are.
    bool consumes = true;
  };

  struct Answer {
    // Fields of all HEADERS frames; trailers override.
    std::map<std::string, std::string> headers;
    std::string body;
    int data_frames = 0;
    // END_STREAM came, or the stream was reset.
    bool ended = false;
    bool has_trailers = false;
    std::optional<uint32_t> reset;
  };

  // Owns `fd`, a connected stream socket.
  RawHttp2Client(int fd, const Options& options);
  explicit RawHttp2Client(int fd) : RawHttp2Client(fd, Options()) {}
  ~RawHttp2Client();
  RawHttp2Client(const RawHttp2Client&) = delete;
  RawHttp2Client& operator=(const RawHttp2Client&) = delete;

  // Begins a request with these headers alone; returns its stream.
  int32_t Request(const Headers& headers, bool end = false);
  // A call of gRPC; `more` headers follow the usual ones.
  int32_t Call(const std::string& path, const Headers& more = {});
  // Bytes of a request's body, as flow control lets them go.
  void Send(int32_t stream, const std::string& bytes, bool end = false);
  void Reset(int32_t stream, uint32_t code = NGHTTP2_CANCEL);
  void Ping();
  // A SETTINGS frame without settings.
  void Settings();
  // Lets the server send more of a stream.
  void AddWindow(int32_t stream, int32_t bytes);

  // Sends and receives until `done`; false when the connection ended first, or nothing came for ten
  // seconds.
  bool RunUntil(const std::function<bool()>& done);
  bool AwaitEnd(int32_t stream) {
    return RunUntil([=, this] { return answers_[stream].ended; });
  }
  // A ping and its answer: the server has handled all that was sent before.
  bool RoundTrip();
  // Sends what may be sent without waiting or receiving; false when the connection has ended.
  bool Flush();

  Answer& answer(int32_t stream) { return answers_[stream]; }
  // For each GOAWAY frame, the last stream that the server accepts, and the error.
  const std::vector<std::pair<int32_t, uint32_t>>& goaways() const { return goaways_; }
  bool closed() const { return closed_; }
  // Streams that the server says it takes at a time.
  uint32_t max_streams() const {
    return nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
  }
  int pings_answered() const { return pings_answered_; }
  // Bytes of the body that are not sent yet.
  size_t unsent(int32_t stream) const;

 private:
  struct Body {
    std::string bytes;
    size_t sent = 0;
    bool end = false;
    bool deferred = false;
  };
  struct Callbacks;

  void Receive();

  const int fd_;
  const Options options_;
  nghttp2_session* session_ = nullptr;
  std::map<int32_t, Body> bodies_;
  std::map<int32_t, Answer> answers_;
  std::vector<std::pair<int32_t, uint32_t>> goaways_;
  std::string output_;
  int pings_answered_ = 0;
  bool closed_ = false;
};

// `message` with gRPC's prefix.
std::string GrpcFrame(const std::string& message, bool compressed = false);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_SUPPORT_RAW_HTTP2_CLIENT_H_
