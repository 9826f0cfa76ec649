#include "server/transport/session_callbacks.h"

#include <algorithm>
#include <array>
#include <limits>
#include <new>

#include "core/status/check.h"
#include "server/transport/connection.h"

namespace phimap {
namespace {

// Maximum answers to pings and settings that wait to be sent.
constexpr size_t kMaxUnsentAnswers = 1000;
constexpr size_t kFrameHeadBytes = 9;
constexpr size_t kMaxFrameBytes = 128 << 10;

absl::string_view View(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace

// nghttp2's callbacks, forwarded to the connection. No exception may pass through nghttp2, which is
// C: if there is no memory, the session ends, and with it the connection.
struct SessionCallbacks {
  static Connection& Of(void* user) { return *static_cast<Connection*>(user); }

  template <typename Work>
  static auto Guarded(void* user, const Work& work) -> decltype(work()) {
    try {
      return work();
    } catch (const std::bad_alloc&) {
      Of(user).loop().NoteMemoryFailures(1);
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
  }

  static int OnBeginFrame(nghttp2_session*, const nghttp2_frame_hd* head, void* user) {
    return Guarded(user, [&] { return Of(user).OnBeginFrame(*head); });
  }
  // Drops a frame of an unknown type, which OnBeginFrame has counted.
  static int Unpack(nghttp2_session*, void**, const nghttp2_frame_hd*, void*) {
    return NGHTTP2_ERR_CANCEL;
  }
  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    return Guarded(user, [&] { return Of(user).OnBeginHeaders(frame->hd.stream_id); });
  }
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                      void* user) {
    return Guarded(user, [&] {
      return Of(user).OnHeader(frame->hd.stream_id, View(name, name_size), View(value, value_size),
                               /*valid=*/true);
    });
  }
  static int OnInvalidHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                             size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                             void* user) {
    return Guarded(user, [&] {
      return Of(user).OnHeader(frame->hd.stream_id, View(name, name_size), View(value, value_size),
                               /*valid=*/false);
    });
  }
  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    return Guarded(user, [&] { return Of(user).OnFrame(*frame); });
  }
  static int OnDataChunk(nghttp2_session*, uint8_t, int32_t stream_id, const uint8_t* data,
                         size_t size, void* user) {
    return Guarded(user, [&] { return Of(user).OnDataChunk(stream_id, View(data, size)); });
  }
  static int OnStreamClose(nghttp2_session*, int32_t stream_id, uint32_t code, void* user) {
    return Guarded(user, [&] { return Of(user).OnStreamClose(stream_id, code); });
  }
  static int OnFrameSent(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    return Guarded(user, [&] { return Of(user).OnFrameSent(*frame); });
  }
  static ssize_t ReadBody(nghttp2_session*, int32_t stream_id, uint8_t*, size_t length,
                          uint32_t* flags, nghttp2_data_source* source, void*) {
    return Guarded(source->ptr, [&] { return Of(source->ptr).ReadBody(stream_id, length, flags); });
  }
  static int SendBody(nghttp2_session*, nghttp2_frame* frame, const uint8_t* head, size_t length,
                      nghttp2_data_source*, void* user) {
    return Guarded(user,
                   [&] { return Of(user).SendBody(*frame, View(head, kFrameHeadBytes), length); });
  }
  // Uses large frames, so that a large answer has fewer frame heads, but none larger than what
  // there is to send: nghttp2 allocates a buffer of this size, although it is not used.
  static ssize_t FrameLength(nghttp2_session*, uint8_t, int32_t stream_id, int32_t session_window,
                             int32_t stream_window, uint32_t max_frame, void* user) {
    const auto allowed =
        std::min<size_t>({static_cast<size_t>(session_window), static_cast<size_t>(stream_window),
                          max_frame, kMaxFrameBytes});
    return static_cast<ssize_t>(
        std::min(allowed, std::max<size_t>(Of(user).UnsentBytes(stream_id), 1)));
  }
};

nghttp2_data_source_read_callback BodyReader() { return SessionCallbacks::ReadBody; }

namespace {

nghttp2_session_callbacks* NewCallbacks() {
  nghttp2_session_callbacks* callbacks = nullptr;
  PHIMAP_CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
  using Calls = SessionCallbacks;
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, Calls::OnBeginFrame);
  nghttp2_session_callbacks_set_unpack_extension_callback(callbacks, Calls::Unpack);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Calls::OnBeginHeaders);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Calls::OnHeader);
  nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, Calls::OnInvalidHeader);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Calls::OnFrame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Calls::OnDataChunk);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Calls::OnStreamClose);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Calls::OnFrameSent);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, Calls::SendBody);
  nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, Calls::FrameLength);
  return callbacks;
}

nghttp2_option* NewOptions() {
  nghttp2_option* options = nullptr;
  PHIMAP_CHECK(nghttp2_option_new(&options) == 0);
  nghttp2_option_set_no_auto_window_update(options, 1);
  // So that frames of unknown types are reported at all.
  for (int type = NGHTTP2_CONTINUATION + 1; type <= std::numeric_limits<uint8_t>::max(); ++type) {
    nghttp2_option_set_user_recv_extension_type(options, static_cast<uint8_t>(type));
  }
  // nghttp2 would keep closed streams only for stream priorities, which no gRPC client uses.
  nghttp2_option_set_no_closed_streams(options, 1);
  nghttp2_option_set_max_outbound_ack(options, kMaxUnsentAnswers);
  // The connection limits resets itself (FloodGuard), because nghttp2 does not know which of the
  // streams were answered.
  nghttp2_option_set_stream_reset_rate_limit(options, std::numeric_limits<uint64_t>::max(), 0);
  return options;
}

}  // namespace

nghttp2_session* NewServerSession(Connection& connection, const ConnectionLimits& limits,
                                  CountedMemory& memory) {
  // Shared by all sessions, and never freed.
  static const nghttp2_session_callbacks* const callbacks = NewCallbacks();
  static const nghttp2_option* const options = NewOptions();
  nghttp2_session* session = nullptr;
  if (nghttp2_session_server_new3(&session, callbacks, &connection, options, memory.functions()) !=
      0) {
    return nullptr;
  }
  const std::array<nghttp2_settings_entry, 4> settings = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
       std::numeric_limits<uint32_t>::max()},  // see FirstFrame
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.stream_window},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<uint32_t>(limits.max_header_bytes)},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, 1 << 18},
  }};
  if (nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) != 0 ||
      nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0,
                                            static_cast<int32_t>(limits.connection_window)) != 0) {
    nghttp2_session_del(session);
    return nullptr;
  }
  return session;
}

std::string FirstFrame(nghttp2_session* session, const ConnectionLimits& limits) {
  const uint8_t* data = nullptr;
  const ssize_t size = nghttp2_session_mem_send(session, &data);
  if (size <= 0) return "";
  std::string frame(View(data, static_cast<size_t>(size)));
  // The first setting is the limit of streams: two bytes of identifier, four of value.
  constexpr size_t kValue = kFrameHeadBytes + 2;
  PHIMAP_CHECK(frame.at(3) == NGHTTP2_SETTINGS &&
               frame.at(kValue - 1) == NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
  for (size_t i = 0; i < 4; ++i) {
    frame.at(kValue + i) = static_cast<char>(limits.max_streams >> (24 - 8 * i));
  }
  return frame;
}

std::string Explained(absl::string_view frame) {
  std::string explained(frame);
  // The body of a GOAWAY: four bytes of the last stream, four of the error, then the debug data.
  constexpr size_t kError = kFrameHeadBytes + 4;
  if (frame.size() != kError + 4 || frame[3] != NGHTTP2_GOAWAY) return explained;
  if (frame.substr(kError) != absl::string_view("\0\0\0\x09", 4)) return explained;
  explained.append(kFieldUndecodable.data(), kFieldUndecodable.size());
  const size_t body = explained.size() - kFrameHeadBytes;
  explained[1] = static_cast<char>(body >> 8);
  explained[2] = static_cast<char>(body);
  return explained;
}

}  // namespace phimap
