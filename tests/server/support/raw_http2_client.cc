#include "tests/server/support/raw_http2_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/status/check.h"

namespace phimap::testing {

struct RawHttp2Client::Callbacks {
  static RawHttp2Client& Of(void* user) { return *static_cast<RawHttp2Client*>(user); }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                      void* user) {
    Answer& answer = Of(user).answers_[frame->hd.stream_id];
    answer.headers[std::string(reinterpret_cast<const char*>(name), name_size)] =
        std::string(reinterpret_cast<const char*>(value), value_size);
    return 0;
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    RawHttp2Client& client = Of(user);
    if (frame->hd.type == NGHTTP2_GOAWAY) {
      client.goaways_.emplace_back(frame->goaway.last_stream_id, frame->goaway.error_code);
    }
    if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) {
      ++client.pings_answered_;
    }
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
      client.answers_[frame->hd.stream_id].reset = frame->rst_stream.error_code;
      client.answers_[frame->hd.stream_id].ended = true;
    }
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    Answer& answer = client.answers_[frame->hd.stream_id];
    if (frame->hd.type == NGHTTP2_DATA) ++answer.data_frames;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_HEADERS) {
      answer.has_trailers = true;
    }
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) answer.ended = true;
    return 0;
  }

  static int OnDataChunk(nghttp2_session* session, uint8_t, int32_t stream, const uint8_t* data,
                         size_t size, void* user) {
    RawHttp2Client& client = Of(user);
    client.answers_[stream].body.append(reinterpret_cast<const char*>(data), size);
    if (client.options_.consumes) nghttp2_session_consume(session, stream, size);
    return 0;
  }

  static int OnStreamClose(nghttp2_session*, int32_t stream, uint32_t, void* user) {
    Of(user).bodies_.erase(stream);
    return 0;
  }

  static ssize_t ReadBody(nghttp2_session*, int32_t stream, uint8_t* out, size_t room,
                          uint32_t* flags, nghttp2_data_source*, void* user) {
    Body& body = Of(user).bodies_[stream];
    const size_t size = std::min(room, body.bytes.size() - body.sent);
    if (size == 0 && !body.end) {
      body.deferred = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    std::memcpy(out, body.bytes.data() + body.sent, size);
    body.sent += size;
    if (body.end && body.sent == body.bytes.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
  }
};

RawHttp2Client::RawHttp2Client(int fd, const Options& options) : fd_(fd), options_(options) {
  fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
  nghttp2_session_callbacks* callbacks = nullptr;
  PHIMAP_CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::OnHeader);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::OnFrame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::OnDataChunk);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::OnStreamClose);
  nghttp2_option* option = nullptr;
  PHIMAP_CHECK(nghttp2_option_new(&option) == 0);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_peer_max_concurrent_streams(option, 1 << 20);
  PHIMAP_CHECK(nghttp2_session_client_new2(&session_, callbacks, this, option) == 0);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                                         static_cast<uint32_t>(options.stream_window)};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &window, 1);
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, options.connection_window);
}

RawHttp2Client::~RawHttp2Client() {
  nghttp2_session_del(session_);
  close(fd_);
}

int32_t RawHttp2Client::Request(const Headers& headers, bool end) {
  std::vector<nghttp2_nv> fields;
  for (const auto& [name, value] : headers) {
    fields.push_back({reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
                      reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(),
                      value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  nghttp2_data_provider body = {};
  body.read_callback = Callbacks::ReadBody;
  return nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(),
                                end ? nullptr : &body, nullptr);
}

int32_t RawHttp2Client::Call(const std::string& path, const Headers& more) {
  Headers headers = {{":method", "POST"}, {":scheme", "http"},
                     {":path", path},     {":authority", "test"},
                     {"te", "trailers"},  {"content-type", "application/grpc"}};
  headers.insert(headers.end(), more.begin(), more.end());
  return Request(headers);
}

void RawHttp2Client::Send(int32_t stream, const std::string& bytes, bool end) {
  Body& body = bodies_[stream];
  body.bytes += bytes;
  body.end = end;
  if (std::exchange(body.deferred, false)) nghttp2_session_resume_data(session_, stream);
}

void RawHttp2Client::Reset(int32_t stream, uint32_t code) {
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, code);
}

void RawHttp2Client::Ping() { nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr); }

void RawHttp2Client::Settings() {
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0);
}

void RawHttp2Client::AddWindow(int32_t stream, int32_t bytes) {
  nghttp2_submit_window_update(session_, NGHTTP2_FLAG_NONE, stream, bytes);
}

size_t RawHttp2Client::unsent(int32_t stream) const {
  const auto found = bodies_.find(stream);
  return found == bodies_.end() ? 0 : found->second.bytes.size() - found->second.sent;
}

bool RawHttp2Client::Flush() {
  while (!closed_) {
    while (!output_.empty()) {
      const ssize_t sent = send(fd_, output_.data(), output_.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EAGAIN) return true;
      if (sent < 0) return false;
      output_.erase(0, static_cast<size_t>(sent));
    }
    const uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    if (size <= 0) return true;
    output_.assign(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
  }
  return false;
}

void RawHttp2Client::Receive() {
  std::array<uint8_t, 65536> bytes;
  const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
  if (got < 0 && errno == EAGAIN) return;
  closed_ =
      got <= 0 || nghttp2_session_mem_recv(session_, bytes.data(), static_cast<size_t>(got)) < 0;
}

bool RawHttp2Client::RunUntil(const std::function<bool()>& done) {
  constexpr int kPatienceMs = 10'000;
  while (!done()) {
    if (closed_) return false;
    // Frames that the server sent before it hung up are read even if nothing can be sent.
    const bool open = Flush();
    if (done()) return true;
    pollfd ready = {fd_, static_cast<short>(POLLIN | (open && !output_.empty() ? POLLOUT : 0)), 0};
    if (poll(&ready, 1, kPatienceMs) <= 0) return false;
    if ((ready.revents & (POLLIN | POLLHUP | POLLERR)) != 0) Receive();
  }
  return true;
}

bool RawHttp2Client::RoundTrip() {
  const int before = pings_answered_;
  Ping();
  return RunUntil([=, this] { return pings_answered_ > before; });
}

std::string GrpcFrame(const std::string& message, bool compressed) {
  const auto size = static_cast<uint32_t>(message.size());
  std::string framed(1, compressed ? '\1' : '\0');
  for (int shift = 24; shift >= 0; shift -= 8) framed += static_cast<char>(size >> shift);
  return framed + message;
}

}  // namespace phimap::testing
