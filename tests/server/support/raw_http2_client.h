// An HTTP/2 client that can send frames in any order. Tests need frames that well-behaved clients
// never send.
//
// The client runs on the test's thread, and only within RunUntil; until then the server's frames
// wait in the socket.
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
    // How many unconsumed bytes the server may have sent, on one stream and on all streams
    // together.
    int32_t stream_window = 65535;
    int32_t connection_window = 1 << 24;
    // If true, data is consumed as it arrives. If false, the windows are never enlarged.
    bool consumes = true;
  };

  struct Answer {
    // The fields of all HEADERS frames. Trailers replace header fields with the same name.
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

  // Begins a request with only these headers; returns its stream.
  int32_t Request(const Headers& headers, bool end = false);
  // Begins a gRPC call with the usual headers, followed by `more`.
  int32_t Call(const std::string& path, const Headers& more = {});
  // Sends the next bytes of a request's body, as fast as flow control allows.
  void Send(int32_t stream, const std::string& bytes, bool end = false);
  void Reset(int32_t stream, uint32_t code = NGHTTP2_CANCEL);
  void Ping();
  // Sends a SETTINGS frame without settings.
  void Settings();
  // Lets the server send `bytes` more on a stream.
  void AddWindow(int32_t stream, int32_t bytes);

  // Sends and receives until `done` returns true. Returns false if the connection ends first, or if
  // nothing arrives for ten seconds.
  bool RunUntil(const std::function<bool()>& done);
  bool AwaitEnd(int32_t stream) {
    return RunUntil([=, this] { return answers_[stream].ended; });
  }
  // Sends a ping, and waits for its answer. When it arrives, the server has handled everything that
  // was sent before the ping.
  bool RoundTrip();
  // Sends as much as possible without waiting and without receiving. Returns false if the
  // connection has ended.
  bool Flush();

  Answer& answer(int32_t stream) { return answers_[stream]; }
  // For each GOAWAY frame, the last stream that the server accepts, and the error.
  const std::vector<std::pair<int32_t, uint32_t>>& goaways() const { return goaways_; }
  bool closed() const { return closed_; }
  // The maximum number of concurrent streams, as the server's settings state it.
  uint32_t max_streams() const {
    return nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
  }
  int pings_answered() const { return pings_answered_; }
  // The number of bytes of a request's body that were not sent yet.
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

// `message` with gRPC's length prefix.
std::string GrpcFrame(const std::string& message, bool compressed = false);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_SUPPORT_RAW_HTTP2_CLIENT_H_
