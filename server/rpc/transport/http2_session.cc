#include "server/rpc/transport/http2_session.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

#include "core/status/check.h"

namespace phimap {

namespace {

nghttp2_nv ToNv(absl::string_view name, absl::string_view value) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NONE};
}

// Maximum number of header fields and of trailer fields in an answer.
constexpr size_t kMaxHeaders = 16;
constexpr size_t kMaxTrailers = 8;
constexpr size_t kFrameHeadBytes = 9;

// Why nghttp2 ends a connection with COMPRESSION_ERROR. It cannot tell an honest field that is too
// long from an attack, and it has then lost the state of the compression, which all later requests
// of the connection need.
constexpr absl::string_view kFieldUndecodable =
    "a header or metadata field is over 65536 bytes or wrongly compressed; the calls of this "
    "connection end with it";

// Returns `frame`, a frame of the session's output, with kFieldUndecodable as debug data if it is
// the GOAWAY with that error, for which nghttp2 gives no reason.
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

}  // namespace

EventLoop& Http2Stream::loop() { return connection_.loop(); }

Http2Stream::~Http2Stream() { session_.trailer_bytes_ -= trailer_bytes_; }

const Peer& Http2Stream::peer() const { return connection_.peer(); }

void Http2Stream::SendHeaders(absl::Span<const Header> headers, bool end) {
  PHIMAP_CHECK(!headers_sent_ && headers.size() <= kMaxHeaders);
  headers_sent_ = true;
  std::array<nghttp2_nv, kMaxHeaders> fields;
  for (size_t i = 0; i < headers.size(); ++i) fields[i] = ToNv(headers[i].name, headers[i].value);
  nghttp2_data_provider body = {};
  body.source.ptr = &session_;
  body.read_callback = Http2Session::BodyReader();
  session_.Require(nghttp2_submit_response(session_.session_, id_, fields.data(), headers.size(),
                                           end ? nullptr : &body));
  connection_.WantFlush();
}

void Http2Stream::Send(std::shared_ptr<const OutputBytes> bytes) {
  PHIMAP_CHECK(headers_sent_ && !has_trailers_);
  const bool first = body_.empty();
  body_.Add(std::move(bytes));
  if (first) {
    progress_ = connection_.loop().now();
    AwaitProgress();
  }
  connection_.stall_watch().WatchStreams();
  Resume();
}

void Http2Stream::MoveBody(size_t length, OutputQueue& output) {
  progress_ = connection_.loop().now();
  owed_ -= static_cast<int64_t>(length);
  body_.Move(length, output);
  if (owed_ <= 0) AwaitProgress();
}

void Http2Stream::SubmitTrailers() {
  std::array<nghttp2_nv, kMaxTrailers> fields;
  const size_t trailers = std::min(trailers_.size(), fields.size());
  for (size_t i = 0; i < trailers; ++i) fields[i] = ToNv(trailers_[i].name, trailers_[i].value);
  session_.Require(nghttp2_submit_trailer(session_.session_, id_, fields.data(), trailers));
}

void Http2Stream::AwaitProgress() {
  owed_ = session_.limits_.OwedOf(static_cast<int64_t>(unsent_bytes()));
  owes_since_ = connection_.loop().now();
}

void Http2Stream::SendTrailers(absl::Span<const Header> trailers) {
  PHIMAP_CHECK(headers_sent_ && !has_trailers_);
  // Complete before it is noted, so that a lack of memory never lets half of them be sent.
  std::vector<OwnedHeader> owned;
  size_t bytes = 0;
  owned.reserve(trailers.size());
  for (const Header& trailer : trailers) {
    owned.push_back({std::string(trailer.name), std::string(trailer.value)});
    bytes += sizeof(OwnedHeader) + trailer.name.size() + trailer.value.size() + 32;
  }
  trailer_bytes_ = bytes;
  session_.trailer_bytes_ += bytes;
  trailers_ = std::move(owned);
  has_trailers_ = true;
  Resume();
}

void Http2Stream::Resume() {
  if (std::exchange(deferred_, false)) {
    session_.Require(nghttp2_session_resume_data(session_.session_, id_));
  }
  connection_.WantFlush();
}

void Http2Stream::NoteAdmitted() { connection_.NoteAdmitted(); }

void Http2Stream::Reset(ResetCode code) {
  reset_by_handler_ = true;
  session_.Require(nghttp2_submit_rst_stream(session_.session_, NGHTTP2_FLAG_NONE, id_,
                                             static_cast<uint32_t>(code)));
  connection_.WantFlush();
}

void Http2Stream::EndConnection() {
  connection_.CondemnWithoutMemory();
  connection_.WantFlush();
}

void Http2Stream::Linger() {
  answered_ = true;
  connection_.loop().timers().Set(linger_timer_,
                                  connection_.loop().now() + session_.limits_.linger);
  // Releases the handler and its resources.
  if (const std::shared_ptr<StreamHandler> handler = std::move(handler_)) {
    handler->OnClosed(ResetCode::kNoError);
  }
}

void Http2Stream::Consume(size_t bytes) {
  session_.Require(nghttp2_session_consume_stream(session_.session_, id_, bytes));
  connection_.WantFlush();
}

void Http2Stream::SetWindow(size_t bytes) {
  session_.Require(nghttp2_session_set_local_window_size(session_.session_, NGHTTP2_FLAG_NONE, id_,
                                                         static_cast<int32_t>(bytes)));
  connection_.WantFlush();
}

namespace {

// Maximum calls that begin between two checks of the clock.
constexpr int kFeedCalls = 32;

constexpr absl::string_view kTooManyResets = "too many streams were reset that had no answer yet";
constexpr absl::string_view kTooManyFrames = "too many frames that carry neither call nor data";

}  // namespace

bool Http2Session::IsAnswered(const Http2Stream& stream) const {
  return stream.headers_sent_ ||
         connection_.loop().now() - stream.began_ >= ResetAllowance::kLongLived;
}

bool Http2Session::CountReset(const Http2Stream* stream) {
  if (stream != nullptr && IsAnswered(*stream)) return true;
  if (connection_.owner().shared(connection_.peer())) return true;
  const bool may = flood_guard_.CountReset(/*answered=*/false, connection_.loop().now());
  if (connection_.owner().host_may(connection_.peer())) return may;
  // The host has reset too many streams, on other connections too. It keeps the calls that were
  // admitted, and begins new ones on a new connection.
  if (connection_.stranger()) return false;
  connection_.FinishGoAway();
  return may;
}

int Http2Session::CountRefused() {
  if (connection_.MayBeRefused()) return 0;
  return EndFlood(ClientFault::kRefusedCalls,
                  "this address made too many calls that were refused; correct the client's token");
}

int Http2Session::OnBeginHeaders(int32_t stream_id) {
  block_bytes_ = 0;
  if (streams_.contains(stream_id)) return 0;  // trailers of a request
  if (streams_.size() >= limits_.max_streams) {
    Require(
        nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_REFUSED_STREAM));
    if (!CountReset(nullptr)) return EndFlood(ClientFault::kResets, kTooManyResets);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }
  head_ = RequestHead();
  streams_.emplace(stream_id, std::make_unique<Http2Stream>(*this, connection_, stream_id,
                                                            connection_.loop().now()));
  return 0;
}

int Http2Session::OnHeader(int32_t stream_id, absl::string_view name, absl::string_view value,
                           bool valid) {
  const size_t bytes = name.size() + value.size() + RequestHead::kFieldBytes;
  block_bytes_ += bytes;
  Http2Stream* const stream = Find(stream_id);
  const bool begins = stream != nullptr && !stream->begun_;
  // A small field that comes after a dropped large field is still kept, because the answer may
  // depend on it.
  const bool kept = begins && valid;
  if ((kept ? head_.list_bytes() + bytes : block_bytes_) <= limits_.max_header_bytes) {
    if (kept) head_.Add(name, value);
    // NGHTTP2_ERR_PAUSE stops the session here. It continues with the next field when it is fed the
    // rest of the input.
    return kept && head_.size() == 1 && ++fed_calls_ > kFeedCalls ? NGHTTP2_ERR_PAUSE : 0;
  }
  if (!flood_guard_.CountDroppedHeader(bytes, connection_.loop().now())) {
    return EndFlood(ClientFault::kHeaders, "too many headers beyond the limit of a call");
  }
  if (begins) {
    head_.too_large = true;
    return 0;
  }
  // Ignores the rest of these trailers.
  Require(
      nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_ENHANCE_YOUR_CALM));
  return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

int Http2Session::OnFrame(const nghttp2_frame& frame) {
  connection_.NoteGreeting();
  const bool end = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS: {
      Http2Stream* const stream = Find(frame.hd.stream_id);
      if (stream == nullptr) return 0;
      if (!std::exchange(stream->begun_, true)) {
        // The head is not kept, because long-lived streams would hold much memory.
        const RequestHead head = std::exchange(head_, RequestHead());
        connection_.acceptor().OnRequest(*stream, head, end);
        if (stream->handler_ == nullptr && CountRefused() != 0) return NGHTTP2_ERR_CALLBACK_FAILURE;
      }
      if (end) EndRequest(*stream);
      return 0;
    }
    case NGHTTP2_DATA: {
      if (frame.hd.length == 0 && !end && CountControlFrame() != 0) {
        return NGHTTP2_ERR_CALLBACK_FAILURE;
      }
      Http2Stream* const stream = Find(frame.hd.stream_id);
      if (stream != nullptr && end) EndRequest(*stream);
      return 0;
    }
    case NGHTTP2_RST_STREAM: {
      const Http2Stream* const stream = Find(frame.hd.stream_id);
      const bool few = stream == nullptr
                           ? flood_guard_.CountControlFrame(connection_.loop().now()) ||
                                 connection_.owner().shared(connection_.peer())
                           : CountReset(stream);
      return few ? 0 : EndFlood(ClientFault::kResets, kTooManyResets);
    }
    // Window updates let answers continue and come at the pace of the data, so they do not count,
    // except those of a stranger, whose answers are short.
    case NGHTTP2_WINDOW_UPDATE:
      return connection_.stranger() ? CountControlFrame() : 0;
    default:
      return CountControlFrame();
  }
}

int Http2Session::CountControlFrame() {
  if (flood_guard_.CountControlFrame(connection_.loop().now())) return 0;
  return EndFlood(ClientFault::kControlFrames, kTooManyFrames);
}

int Http2Session::OnBeginFrame(const nghttp2_frame_hd& head) {
  // Frames of unknown types are dropped without another call.
  return head.type > NGHTTP2_CONTINUATION ? CountControlFrame() : 0;
}

void Http2Session::EndRequest(Http2Stream& stream) {
  if (std::exchange(stream.request_ended_, true) || stream.answered_) return;
  if (stream.handler_ == nullptr) return;
  const std::shared_ptr<StreamHandler> handler = stream.handler_;
  handler->OnRequestEnd();
}

int Http2Session::OnDataChunk(int32_t stream_id, absl::string_view bytes) {
  // The connection's window is reopened at once, because memory is bounded by the streams' windows.
  Require(nghttp2_session_consume_connection(session_, bytes.size()));
  Http2Stream* const stream = Find(stream_id);
  // An answered stream's window stays closed, since its input is no longer read.
  if (stream != nullptr && stream->answered_) return 0;
  if (stream == nullptr || stream->handler_ == nullptr) {
    Require(nghttp2_session_consume_stream(session_, stream_id, bytes.size()));
    return 0;
  }
  const std::shared_ptr<StreamHandler> handler = stream->handler_;
  handler->OnData(bytes);
  return 0;
}

int Http2Session::OnStreamClose(int32_t stream_id, uint32_t code) {
  const auto found = streams_.find(stream_id);
  if (found == streams_.end()) return 0;
  const std::unique_ptr<Http2Stream> stream = std::move(found->second);
  streams_.erase(found);
  if (IsAnswered(*stream)) flood_guard_.EarnReset();
  if (stream->handler_ != nullptr) stream->handler_->OnClosed(static_cast<ResetCode>(code));
  return 0;
}

int Http2Session::OnFrameSent(const nghttp2_frame& frame) {
  if (frame.hd.type == NGHTTP2_GOAWAY && frame.goaway.error_code != NGHTTP2_NO_ERROR) {
    const auto* const why = reinterpret_cast<const char*>(frame.goaway.opaque_data);
    connection_.owner().blamed(connection_.peer(), fault_,
                               frame.goaway.error_code == NGHTTP2_COMPRESSION_ERROR
                                   ? kFieldUndecodable
                                   : absl::string_view(why, frame.goaway.opaque_data_len));
    return 0;
  }
  if (frame.hd.type == NGHTTP2_RST_STREAM) {
    // Resets of nghttp2, which the client has provoked, for example by more data than its window.
    // Those of the handlers are noted in the stream, and those of OnBeginHeaders were counted
    // there.
    const Http2Stream* const reset = Find(frame.hd.stream_id);
    const bool provoked = reset != nullptr && !reset->reset_by_handler_;
    if (provoked && !CountReset(reset)) EndFlood(ClientFault::kResets, kTooManyResets);
    return 0;
  }
  const bool ends = frame.hd.type == NGHTTP2_HEADERS || frame.hd.type == NGHTTP2_DATA;
  if (!ends || (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
  Http2Stream* const stream = Find(frame.hd.stream_id);
  // If the request has ended, nghttp2 closes the stream.
  if (stream != nullptr && !stream->request_ended_) stream->Linger();
  return 0;
}

size_t Http2Session::UnsentBytes(int32_t stream_id) {
  const Http2Stream* const stream = Find(stream_id);
  return stream == nullptr ? 0 : stream->unsent_bytes();
}

ssize_t Http2Session::ReadBody(int32_t stream_id, size_t length, uint32_t* flags) {
  Http2Stream* const stream = Find(stream_id);
  if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  if (stream->body_.empty() && !stream->has_trailers_) {
    stream->deferred_ = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  const size_t size = stream->unsent_bytes();
  const size_t count = std::min(size, length);
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (count == size && stream->has_trailers_) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!stream->trailers_.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      stream->SubmitTrailers();
    }
  }
  return static_cast<ssize_t>(count);
}

int Http2Session::SendBody(const nghttp2_frame& frame, absl::string_view frame_head,
                           size_t length) {
  Http2Stream* const stream = Find(frame.hd.stream_id);
  if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  connection_.output().Append(frame_head);
  stream->MoveBody(length, connection_.output());
  if (stream->body_.empty() && !stream->has_trailers_ && stream->handler_ != nullptr) {
    const std::shared_ptr<StreamHandler> handler = stream->handler_;
    handler->OnSent();
  }
  // Without the pause, nghttp2 would frame output until the client's flow-control windows are full.
  return connection_.OutputFull() ? NGHTTP2_ERR_PAUSE : 0;
}

namespace {

// Maximum answers to pings and settings that wait to be sent.
constexpr size_t kMaxUnsentAnswers = 1000;
constexpr size_t kMaxFrameBytes = 128 << 10;

absl::string_view View(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace

// nghttp2's callbacks, forwarded to the connection. No exception may pass through nghttp2, which is
// C: if there is no memory, the session ends, and with it the connection.
struct SessionCallbacks {
  static Http2Session& Of(void* user) { return *static_cast<Http2Session*>(user); }

  template <typename Work>
  static auto Guarded(void* user, const Work& work) -> decltype(work()) {
    try {
      return work();
    } catch (const std::bad_alloc&) {
      Of(user).connection_.loop().NoteMemoryFailures(1);
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

nghttp2_data_source_read_callback Http2Session::BodyReader() { return SessionCallbacks::ReadBody; }

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

// Creates a session whose events go to `events`, with its first SETTINGS frame queued. The session
// itself accepts any number of streams: nghttp2 would end the whole connection of a client that has
// acknowledged a limit and then exceeds it. `events` resets such streams instead. Returns null if
// there is no memory. `memory` must outlive the session.
nghttp2_session* NewServerSession(Http2Session& events, const ConnectionLimits& limits,
                                  CountedMemory& memory) {
  // Shared by all sessions, and never freed.
  static const nghttp2_session_callbacks* const callbacks = NewCallbacks();
  static const nghttp2_option* const options = NewOptions();
  nghttp2_session* session = nullptr;
  if (nghttp2_session_server_new3(&session, callbacks, &events, options, memory.functions()) != 0) {
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

// Returns the first SETTINGS frame as sent to the client, with the real limit of streams; empty if
// there is no memory. Call it once, before any other output is taken from the session.
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

}  // namespace

Http2Session::Http2Session(Connection& connection)
    : connection_(connection),
      limits_(connection.owner().limits),
      flood_guard_(connection.owner().limits) {}

std::unique_ptr<Http2Session> Http2Session::Open(Connection& connection) {
  std::unique_ptr<Http2Session> opened(new Http2Session(connection));
  opened->session_ = NewServerSession(*opened, opened->limits_, opened->memory_);
  if (opened->session_ == nullptr) return nullptr;
  const std::string first = FirstFrame(opened->session_, opened->limits_);
  if (first.empty()) return nullptr;
  connection.output().Append(first);
  return opened;
}

Http2Session::~Http2Session() {
  if (session_ != nullptr) nghttp2_session_del(session_);
}

Session::Fed Http2Session::Feed(absl::string_view bytes) {
  fed_calls_ = 0;
  const ssize_t used = nghttp2_session_mem_recv(
      session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (used == NGHTTP2_ERR_BAD_CLIENT_MAGIC) return {.end = Fed::End::kOtherProtocol};
  if (used < 0) return {.end = Fed::End::kFailed};
  return {.used = static_cast<size_t>(used)};
}

bool Http2Session::Frame() {
  while (!connection_.OutputFull()) {
    const uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    if (size < 0) return false;
    if (size == 0) return true;
    const absl::string_view frame(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
    if (frame[3] == NGHTTP2_GOAWAY) {
      connection_.output().Append(Explained(frame));
    } else {
      connection_.output().Append(frame);
    }
  }
  return true;
}

void Http2Session::RefuseCalls() {
  Require(nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                                nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                                nullptr, 0));
}

void Http2Session::CloseStreams() {
  // Removes the streams first, so that handlers cannot use a session that is being destroyed.
  auto streams = std::move(streams_);
  streams_.clear();
  for (auto& [id, stream] : streams) {
    if (stream->handler_ != nullptr) stream->handler_->OnClosed(ResetCode::kCancel);
  }
}

size_t Http2Session::unsent_bytes() const {
  size_t bytes = 0;
  for (const auto& [id, stream] : streams_) bytes += stream->unsent_bytes();
  return bytes;
}

size_t Http2Session::held_bytes() const {
  // The map's slot of a stream, and the blocks of the allocator.
  constexpr size_t kStream = sizeof(Http2Stream) + 64;
  return memory_.bytes() + streams_.size() * kStream + trailer_bytes_;
}

bool Http2Session::EndStalledStreams(absl::Time before, bool stalled) {
  bool unsent = false;
  for (auto& [id, stream] : streams_) {
    if (stream->body_.empty()) continue;
    // On a stalled connection, only a stream whose own window is closed is to blame.
    const bool to_blame = !stalled || IsShut(*stream);
    if (stream->progress_ <= before || (stream->owes_since_ <= before && to_blame)) {
      stream->Reset(ResetCode::kCancel);  // the stream closes when the frame is sent
    } else {
      unsent = true;
    }
  }
  return unsent;
}

bool Http2Session::IsShut(const Http2Stream& stream) const {
  return nghttp2_session_get_stream_remote_window_size(session_, stream.id_) <= 0;
}

void Http2Session::Require(int result) {
  if (result == NGHTTP2_ERR_NOMEM) connection_.CondemnWithoutMemory();
}

int Http2Session::EndFlood(ClientFault fault, absl::string_view why) {
  if (connection_.Condemn()) return NGHTTP2_ERR_CALLBACK_FAILURE;
  fault_ = fault;
  // Without memory for the reason, the connection ends without one.
  nghttp2_submit_goaway(
      session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
      NGHTTP2_ENHANCE_YOUR_CALM, reinterpret_cast<const uint8_t*>(why.data()), why.size());
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

Http2Stream* Http2Session::Find(int32_t stream_id) {
  const auto found = streams_.find(stream_id);
  return found == streams_.end() ? nullptr : found->second.get();
}

}  // namespace phimap
