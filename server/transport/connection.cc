#include "server/transport/connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "core/status/check.h"
#include "server/sync/steady_time.h"
#include "server/transport/session_callbacks.h"

namespace phimap {
namespace {

// Size of one read from the socket.
constexpr size_t kReadBytes = 64 << 10;
// Maximum number of input bytes fed to the session between two checks of the clock. A call can be
// hardly larger than a frame head. More bytes could therefore hold hundreds of calls, which would
// take a millisecond.
constexpr size_t kFeedBytes = 4 << 10;
constexpr int kFeedCalls = 32;
// Time that a connection may read, or send, in one round of the event loop.
constexpr auto kShare = std::chrono::microseconds(500);
// Nothing more is read while more than this many frames wait in the session to be sent.
constexpr size_t kMaxQueuedFrames = 4096;

constexpr absl::string_view kTooManyFrames = "too many frames that carry neither call nor data";

// Bytes counted for a header field in addition to its name and value.
constexpr size_t kFieldBytes = 32;

char* ReadBuffer() {
  static thread_local std::array<char, kReadBytes> buffer;
  return buffer.data();
}

}  // namespace

Connection::Connection(EventLoop& loop, std::unique_ptr<Channel> channel, Peer peer,
                       const Owner& owner)
    : loop_(loop),
      owner_(owner),
      channel_(std::move(channel)),
      peer_(std::move(peer)),
      flood_guard_(owner.limits),
      age_timer_(*this),
      go_away_timer_(*this),
      stall_watch_(*this),
      self_(std::make_shared<Connection*>(this)) {}

Connection::~Connection() {
  PHIMAP_CHECK(!in_session_);
  End();
  *self_ = nullptr;
}

void Connection::Start() {
  stall_watch_.BeginHandshake();
  if (!channel_->needs_handshake()) return Open();
  Watch(EPOLLIN);
}

void Connection::ContinueHandshake() {
  if (handshaking_elsewhere_) return;
  handshaking_elsewhere_ = true;
  Watch(0);
  // The connection does not use the channel during the step. If the connection ends during the
  // step, it is not destroyed before the step is done.
  auto step = [self = self_, channel = channel_.get(), peer = peer_, loop = &loop_]() mutable {
    const Channel::State state = channel->Handshake(peer);
    loop->Post([self = std::move(self), state, peer = std::move(peer)] {
      if (*self != nullptr) (*self)->HandshakeStepDone(state, peer);
    });
  };
  if (owner_.run_handshake(std::move(step))) return;
  handshaking_elsewhere_ = false;
  End();  // too many handshakes are queued
}

void Connection::HandshakeStepDone(Channel::State state, const Peer& peer) {
  handshaking_elsewhere_ = false;
  peer_ = peer;
  if (state_ == State::kEnded) return owner_.ended(*this);
  switch (state) {
    case Channel::State::kDone:
      return Open();
    case Channel::State::kWantsRead:
      return Watch(EPOLLIN);
    case Channel::State::kWantsWrite:
      return Watch(EPOLLOUT);
    case Channel::State::kClosed:
      return End();
  }
}

void Connection::Open() {
  state_ = State::kOpen;
  session_ = NewServerSession(*this, owner_.limits);
  output_.Append(FirstFrame(session_, owner_.limits));
  const absl::Duration age = owner_.limits.max_age;
  if (age != absl::InfiniteDuration()) loop_.timers().Set(age_timer_, SteadyNow() + age);
  Watch(EPOLLIN);
  WantFlush();
  if (channel_->has_buffered()) loop_.Again(*this);
}

void Connection::Watch(uint32_t events) {
  if (added_ && events == watched_) return;
  if (added_) {
    loop_.Change(channel_->fd(), events, *this);
  } else {
    loop_.Add(channel_->fd(), events, *this);
  }
  added_ = true;
  watched_ = events;
}

void Connection::OnReady(uint32_t events) {
  if (state_ == State::kEnded) return;
  if (state_ == State::kLingering) return DropInput();
  if (state_ == State::kHandshake) {
    if (events != 0) ContinueHandshake();
    return;
  }
  const bool readable = (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
  if (readable || input_used_ < input_.size() || channel_->has_buffered()) ReadShare();
  if (state_ == State::kEnded) return;
  if ((events & EPOLLOUT) != 0) write_blocked_ = false;
  // Sends only at the end of a round, or when the socket is writable again, so that answers are
  // sent together.
  if (events == 0 || (events & EPOLLOUT) != 0) Flush();
}

void Connection::ReadShare() {
  // Reads at most one share between two polls, whether an event or Again caused this call.
  if (std::exchange(last_share_, loop_.now()) == loop_.now()) return loop_.Again(*this);
  const auto until = std::chrono::steady_clock::now() + kShare;
  while (true) {
    while (input_used_ < input_.size()) {
      const size_t size = std::min(kFeedBytes, input_.size() - input_used_);
      const auto fed = Feed(absl::string_view(input_).substr(input_used_, size));
      if (!fed.has_value()) return;
      input_used_ += *fed;
      if (std::chrono::steady_clock::now() >= until) return loop_.Again(*this);
    }
    input_.clear();
    input_used_ = 0;
    // Reads no more requests from a client that does not read its answers.
    if (OutputFull() || nghttp2_session_get_outbound_queue_size(session_) > kMaxQueuedFrames) {
      WantFlush();
      return;
    }
    const Channel::Result got = channel_->Read(ReadBuffer(), kReadBytes);
    if (got.state == Channel::State::kClosed) return End();
    if (got.state != Channel::State::kDone) return;
    absl::string_view bytes(ReadBuffer(), got.bytes);
    while (!bytes.empty()) {
      const auto fed = Feed(bytes.substr(0, kFeedBytes));
      if (!fed.has_value()) return;
      bytes.remove_prefix(*fed);
      if (!bytes.empty() && std::chrono::steady_clock::now() >= until) {
        input_.assign(bytes.data(), bytes.size());
        return loop_.Again(*this);
      }
    }
    // If more data is readable, epoll reports it at the next poll.
    if (got.bytes < kReadBytes && !channel_->has_buffered()) return;
    if (std::chrono::steady_clock::now() >= until) {
      if (channel_->has_buffered()) loop_.Again(*this);
      return;
    }
  }
}

std::optional<size_t> Connection::Feed(absl::string_view bytes) {
  in_session_ = true;
  fed_calls_ = 0;
  const ssize_t used = nghttp2_session_mem_recv(
      session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  in_session_ = false;
  if (used < 0 || end_wanted_) {
    // Tries to send the last frames that nghttp2 has queued, such as a GOAWAY with the reason.
    Frame();
    channel_->Write(output_);
    End();
    return std::nullopt;
  }
  WantFlush();
  return static_cast<size_t>(used);
}

bool Connection::Frame() {
  while (!OutputFull()) {
    const uint8_t* data = nullptr;
    in_session_ = true;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    in_session_ = false;
    if (size < 0) return false;
    if (size == 0) return true;
    output_.Append({reinterpret_cast<const char*>(data), static_cast<size_t>(size)});
  }
  return true;
}

bool Connection::SendShare() {
  const auto until = std::chrono::steady_clock::now() + kShare;
  while (true) {
    if (!Frame()) return false;
    if (write_blocked_) return true;
    const bool full = OutputFull();
    const size_t unsent = output_.size();
    const Channel::State sent = channel_->Write(output_);
    if (sent == Channel::State::kClosed) return false;
    stall_watch_.NoteWritten(static_cast<int64_t>(unsent - output_.size()));
    write_blocked_ = sent == Channel::State::kWantsWrite;
    // A write that stopped midway has made space in the output. It is filled again, because a
    // client is read as long as the output has space.
    if (write_blocked_) return Frame();
    if (!full) return true;
    // The output has space again. Input that was not read while the output was full can now be
    // read.
    loop_.Again(*this);
    if (std::chrono::steady_clock::now() >= until) return true;
  }
}

void Connection::Flush() {
  flushing_ = true;
  const bool open = SendShare();
  flushing_ = false;
  if (!open) return End();
  const bool done = nghttp2_session_want_read(session_) == 0 &&
                    nghttp2_session_want_write(session_) == 0 && output_.empty();
  if (done || (gone_away_ && streams_.empty() && output_.empty() && !write_blocked_ &&
               nghttp2_session_want_write(session_) == 0)) {
    if (gone_away_ && streams_.empty()) return Linger();
    channel_->Shutdown();
    return End();
  }
  const bool read = !OutputFull();
  Watch((read ? static_cast<uint32_t>(EPOLLIN) : 0) |
        (write_blocked_ ? static_cast<uint32_t>(EPOLLOUT) : 0));
  stall_watch_.Look();
}

// If the server closed the socket while the client still sends (window updates, pings), the system
// would reset the connection and lose answers in flight. Input is therefore read and dropped until
// the client closes.
void Connection::Linger() {
  if (state_ != State::kOpen) return;
  state_ = State::kLingering;
  channel_->Shutdown();
  Watch(EPOLLIN);
  stall_watch_.BeginLinger();
}

void Connection::DropInput() {
  if (channel_->Read(ReadBuffer(), kReadBytes).state == Channel::State::kClosed) End();
}

bool Connection::IsAnswered(const Http2Stream& stream) const {
  return stream.headers_sent_ || loop_.now() - stream.began_ >= ResetAllowance::kLongLived;
}

int Connection::EndFlood(ClientFault fault, absl::string_view why) {
  fault_ = fault;
  nghttp2_submit_goaway(
      session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
      NGHTTP2_ENHANCE_YOUR_CALM, reinterpret_cast<const uint8_t*>(why.data()), why.size());
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

void Connection::BeginGoAway() {
  if (state_ != State::kOpen || std::exchange(going_away_, true)) return;
  nghttp2_submit_shutdown_notice(session_);
  loop_.timers().Set(go_away_timer_, SteadyNow() + owner_.limits.go_away_notice);
  WantFlush();
}

void Connection::FinishGoAway() {
  if (state_ == State::kHandshake) return End();
  if (state_ != State::kOpen || std::exchange(gone_away_, true)) return;
  going_away_ = true;
  go_away_timer_.Cancel();
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                        nullptr, 0);
  WantFlush();
}

void Connection::Close() {
  if (state_ == State::kOpen && !in_session_) {
    Frame();
    channel_->Write(output_);
  }
  End();
}

void Connection::End() {
  if (in_session_) {
    end_wanted_ = true;
    return;
  }
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  age_timer_.Cancel();
  go_away_timer_.Cancel();
  stall_watch_.Stop();
  if (added_) loop_.Remove(channel_->fd(), *this);
  loop_.Forget(*this);
  // Removes the streams first, so that handlers cannot use a session that is being destroyed.
  auto streams = std::move(streams_);
  streams_.clear();
  for (auto& [id, stream] : streams) {
    if (stream->handler_ != nullptr) stream->handler_->OnClosed(ResetCode::kCancel);
  }
  if (session_ != nullptr) nghttp2_session_del(std::exchange(session_, nullptr));
  // A running handshake step still uses the channel; HandshakeStepDone then calls `ended`.
  if (!handshaking_elsewhere_) owner_.ended(*this);
}

Http2Stream* Connection::Find(int32_t stream_id) {
  const auto found = streams_.find(stream_id);
  return found == streams_.end() ? nullptr : found->second.get();
}

int Connection::OnBeginHeaders(int32_t stream_id) {
  block_bytes_ = 0;
  if (streams_.contains(stream_id)) return 0;  // trailers of a request
  if (streams_.size() >= owner_.limits.max_streams) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_REFUSED_STREAM);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }
  head_ = RequestHead();
  streams_.emplace(stream_id, std::make_unique<Http2Stream>(*this, stream_id, loop_.now()));
  return 0;
}

int Connection::OnHeader(int32_t stream_id, absl::string_view name, absl::string_view value,
                         bool valid) {
  const size_t bytes = name.size() + value.size() + kFieldBytes;
  block_bytes_ += bytes;
  Http2Stream* const stream = Find(stream_id);
  const bool begins = stream != nullptr && !stream->begun_;
  // A small field that comes after a dropped large field is still kept, because the answer may
  // depend on it.
  const bool kept = begins && valid;
  if ((kept ? head_.list_bytes() + bytes : block_bytes_) <= owner_.limits.max_header_bytes) {
    if (kept) head_.Add(name, value);
    // NGHTTP2_ERR_PAUSE stops the session here. It continues with the next field when it is fed the
    // rest of the input.
    return kept && head_.size() == 1 && ++fed_calls_ > kFeedCalls ? NGHTTP2_ERR_PAUSE : 0;
  }
  if (!flood_guard_.CountDroppedHeader(bytes, loop_.now())) {
    return EndFlood(ClientFault::kHeaders, "too many headers beyond the limit of a call");
  }
  if (begins) {
    head_.too_large = true;
    return 0;
  }
  // Ignores the rest of these trailers.
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_ENHANCE_YOUR_CALM);
  return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

int Connection::OnFrame(const nghttp2_frame& frame) {
  if (!std::exchange(greeted_, true)) stall_watch_.EndHandshake();
  const bool end = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS: {
      Http2Stream* const stream = Find(frame.hd.stream_id);
      if (stream == nullptr) return 0;
      if (!std::exchange(stream->begun_, true)) {
        // The head is not kept, because long-lived streams would hold much memory.
        const RequestHead head = std::exchange(head_, RequestHead());
        owner_.acceptor.OnRequest(*stream, head, end);
      }
      if (end) EndRequest(*stream);
      return 0;
    }
    case NGHTTP2_DATA: {
      if (frame.hd.length == 0 && !end && !flood_guard_.CountControlFrame(loop_.now())) {
        return EndFlood(ClientFault::kControlFrames, kTooManyFrames);
      }
      Http2Stream* const stream = Find(frame.hd.stream_id);
      if (stream != nullptr && end) EndRequest(*stream);
      return 0;
    }
    case NGHTTP2_RST_STREAM: {
      const Http2Stream* const stream = Find(frame.hd.stream_id);
      const bool few = stream == nullptr
                           ? flood_guard_.CountControlFrame(loop_.now())
                           : flood_guard_.CountReset(IsAnswered(*stream), loop_.now());
      if (few || owner_.shared(peer_)) return 0;
      return EndFlood(ClientFault::kResets, "too many streams were reset that had no answer yet");
    }
    // Window updates let answers continue and come at the pace of the data, so they do not count.
    case NGHTTP2_WINDOW_UPDATE:
      return 0;
    default:
      return flood_guard_.CountControlFrame(loop_.now())
                 ? 0
                 : EndFlood(ClientFault::kControlFrames, kTooManyFrames);
  }
}

void Connection::EndRequest(Http2Stream& stream) {
  if (std::exchange(stream.request_ended_, true) || stream.answered_) return;
  if (stream.handler_ == nullptr) return;
  const std::shared_ptr<StreamHandler> handler = stream.handler_;
  handler->OnRequestEnd();
}

int Connection::OnDataChunk(int32_t stream_id, absl::string_view bytes) {
  // The connection's window is reopened at once, because memory is bounded by the streams' windows.
  nghttp2_session_consume_connection(session_, bytes.size());
  Http2Stream* const stream = Find(stream_id);
  // An answered stream's window stays closed, since its input is no longer read.
  if (stream != nullptr && stream->answered_) return 0;
  if (stream == nullptr || stream->handler_ == nullptr) {
    nghttp2_session_consume_stream(session_, stream_id, bytes.size());
    return 0;
  }
  const std::shared_ptr<StreamHandler> handler = stream->handler_;
  handler->OnData(bytes);
  return 0;
}

int Connection::OnStreamClose(int32_t stream_id, uint32_t code) {
  const auto found = streams_.find(stream_id);
  if (found == streams_.end()) return 0;
  const std::unique_ptr<Http2Stream> stream = std::move(found->second);
  streams_.erase(found);
  if (IsAnswered(*stream)) flood_guard_.EarnReset();
  if (stream->handler_ != nullptr) stream->handler_->OnClosed(static_cast<ResetCode>(code));
  return 0;
}

int Connection::OnFrameSent(const nghttp2_frame& frame) {
  if (frame.hd.type == NGHTTP2_GOAWAY && frame.goaway.error_code != NGHTTP2_NO_ERROR) {
    const auto* const why = reinterpret_cast<const char*>(frame.goaway.opaque_data);
    owner_.blamed(peer_, fault_, {why, frame.goaway.opaque_data_len});
    return 0;
  }
  const bool ends = frame.hd.type == NGHTTP2_HEADERS || frame.hd.type == NGHTTP2_DATA;
  if (!ends || (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
  Http2Stream* const stream = Find(frame.hd.stream_id);
  // If the request has ended, nghttp2 closes the stream.
  if (stream != nullptr && !stream->request_ended_) stream->Linger();
  return 0;
}

ssize_t Connection::ReadBody(int32_t stream_id, size_t length, uint32_t* flags) {
  Http2Stream* const stream = Find(stream_id);
  if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  if (stream->body_.empty() && !stream->has_trailers_) {
    stream->deferred_ = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  const size_t size = stream->UnsentBytes();
  const size_t count = std::min(size, length);
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (count == size && stream->has_trailers_) {
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    stream->SubmitTrailers();
  }
  return static_cast<ssize_t>(count);
}

int Connection::SendBody(const nghttp2_frame& frame, absl::string_view frame_head, size_t length) {
  Http2Stream* const stream = Find(frame.hd.stream_id);
  if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  output_.Append(frame_head);
  stream->MoveBody(length, output_);
  if (stream->body_.empty() && !stream->has_trailers_ && stream->handler_ != nullptr) {
    const std::shared_ptr<StreamHandler> handler = stream->handler_;
    handler->OnSent();
  }
  // Without the pause, nghttp2 would frame output until the client's flow-control windows are full.
  return OutputFull() ? NGHTTP2_ERR_PAUSE : 0;
}

}  // namespace phimap
