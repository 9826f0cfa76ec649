// The connection's part of the session: what it does with frames that arrive and that are sent.
#include <algorithm>
#include <utility>

#include "core/status/check.h"
#include "server/transport/connection.h"
#include "server/transport/session_callbacks.h"

namespace phimap {
namespace {

// Maximum calls that begin between two checks of the clock.
constexpr int kFeedCalls = 32;
// Bytes counted for a header field in addition to its name and value.
constexpr size_t kFieldBytes = 32;

constexpr absl::string_view kTooManyResets = "too many streams were reset that had no answer yet";
constexpr absl::string_view kTooManyFrames = "too many frames that carry neither call nor data";

}  // namespace

bool Connection::IsAnswered(const Http2Stream& stream) const {
  return stream.headers_sent_ || loop_.now() - stream.began_ >= ResetAllowance::kLongLived;
}

bool Connection::CountReset(const Http2Stream* stream) {
  if (stream != nullptr && IsAnswered(*stream)) return true;
  if (owner_.shared(peer_)) return true;
  const bool may = flood_guard_.CountReset(/*answered=*/false, loop_.now());
  if (owner_.host_may(peer_)) return may;
  // The host has reset too many streams, on other connections too. It keeps the calls that were
  // admitted, and begins new ones on a new connection.
  if (stranger_) return false;
  FinishGoAway();
  return may;
}

int Connection::CountRefused() {
  if (!stranger_ || owner_.shared(peer_) || owner_.host_may(peer_)) return 0;
  return EndFlood(ClientFault::kRefusedCalls,
                  "this address made too many calls that were refused; correct the client's token");
}

int Connection::OnBeginHeaders(int32_t stream_id) {
  block_bytes_ = 0;
  if (streams_.contains(stream_id)) return 0;  // trailers of a request
  if (streams_.size() >= owner_.limits.max_streams) {
    Require(
        nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_REFUSED_STREAM));
    if (!CountReset(nullptr)) return EndFlood(ClientFault::kResets, kTooManyResets);
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
  Require(
      nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_ENHANCE_YOUR_CALM));
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
                           ? flood_guard_.CountControlFrame(loop_.now()) || owner_.shared(peer_)
                           : CountReset(stream);
      return few ? 0 : EndFlood(ClientFault::kResets, kTooManyResets);
    }
    // Window updates let answers continue and come at the pace of the data, so they do not count,
    // except those of a stranger, whose answers are short.
    case NGHTTP2_WINDOW_UPDATE:
      return stranger_ ? CountControlFrame() : 0;
    default:
      return CountControlFrame();
  }
}

int Connection::CountControlFrame() {
  if (flood_guard_.CountControlFrame(loop_.now())) return 0;
  return EndFlood(ClientFault::kControlFrames, kTooManyFrames);
}

int Connection::OnBeginFrame(const nghttp2_frame_hd& head) {
  // Frames of unknown types are dropped without another call.
  return head.type > NGHTTP2_CONTINUATION ? CountControlFrame() : 0;
}

void Connection::EndRequest(Http2Stream& stream) {
  if (std::exchange(stream.request_ended_, true) || stream.answered_) return;
  if (stream.handler_ == nullptr) return;
  const std::shared_ptr<StreamHandler> handler = stream.handler_;
  handler->OnRequestEnd();
}

int Connection::OnDataChunk(int32_t stream_id, absl::string_view bytes) {
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
    owner_.blamed(peer_, fault_,
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

size_t Connection::UnsentBytes(int32_t stream_id) {
  const Http2Stream* const stream = Find(stream_id);
  return stream == nullptr ? 0 : stream->unsent_bytes();
}

ssize_t Connection::ReadBody(int32_t stream_id, size_t length, uint32_t* flags) {
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
