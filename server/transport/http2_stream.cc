#include "server/transport/http2_stream.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/status/check.h"
#include "server/transport/connection.h"
#include "server/transport/session_callbacks.h"

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

}  // namespace

EventLoop& Http2Stream::loop() { return connection_.loop(); }

Http2Stream::~Http2Stream() { connection_.trailer_bytes_ -= trailer_bytes_; }

const Peer& Http2Stream::peer() const { return connection_.peer(); }

void Http2Stream::SendHeaders(absl::Span<const Header> headers, bool end) {
  PHIMAP_CHECK(!headers_sent_ && headers.size() <= kMaxHeaders);
  headers_sent_ = true;
  std::array<nghttp2_nv, kMaxHeaders> fields;
  for (size_t i = 0; i < headers.size(); ++i) fields[i] = ToNv(headers[i].name, headers[i].value);
  nghttp2_data_provider body = {};
  body.source.ptr = &connection_;
  body.read_callback = BodyReader();
  connection_.Require(nghttp2_submit_response(connection_.session_, id_, fields.data(),
                                              headers.size(), end ? nullptr : &body));
  connection_.WantFlush();
}

void Http2Stream::Send(std::shared_ptr<const OutputBytes> bytes) {
  PHIMAP_CHECK(headers_sent_ && !has_trailers_);
  const bool first = body_.empty();
  body_.push_back(std::move(bytes));
  if (first) {
    progress_ = connection_.loop().now();
    AwaitProgress();
  }
  connection_.stall_watch_.WatchStreams();
  Resume();
}

size_t Http2Stream::unsent_bytes() const {
  size_t bytes = 0;
  for (const auto& piece : body_) bytes += piece->bytes().size();
  return bytes - sent_;
}

void Http2Stream::MoveBody(size_t length, OutputQueue& output) {
  progress_ = connection_.loop().now();
  owed_ -= static_cast<int64_t>(length);
  while (length > 0) {
    const std::shared_ptr<const OutputBytes>& first = body_.front();
    const absl::string_view bytes = first->bytes().substr(sent_, length);
    output.Append(first, bytes);
    length -= bytes.size();
    sent_ += bytes.size();
    if (sent_ == first->bytes().size()) {
      body_.pop_front();
      sent_ = 0;
    }
  }
  if (owed_ <= 0) AwaitProgress();
}

void Http2Stream::SubmitTrailers() {
  std::array<nghttp2_nv, kMaxTrailers> fields;
  const size_t trailers = std::min(trailers_.size(), fields.size());
  for (size_t i = 0; i < trailers; ++i) fields[i] = ToNv(trailers_[i].name, trailers_[i].value);
  connection_.Require(nghttp2_submit_trailer(connection_.session_, id_, fields.data(), trailers));
}

void Http2Stream::AwaitProgress() {
  owed_ = connection_.owner_.limits.OwedOf(static_cast<int64_t>(unsent_bytes()));
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
  connection_.trailer_bytes_ += bytes;
  trailers_ = std::move(owned);
  has_trailers_ = true;
  Resume();
}

void Http2Stream::Resume() {
  if (std::exchange(deferred_, false)) {
    connection_.Require(nghttp2_session_resume_data(connection_.session_, id_));
  }
  connection_.WantFlush();
}

void Http2Stream::NoteAdmitted() { connection_.NoteAdmitted(); }

void Http2Stream::Reset(ResetCode code) {
  reset_by_handler_ = true;
  connection_.Require(nghttp2_submit_rst_stream(connection_.session_, NGHTTP2_FLAG_NONE, id_,
                                                static_cast<uint32_t>(code)));
  connection_.WantFlush();
}

void Http2Stream::EndConnection() {
  connection_.Require(NGHTTP2_ERR_NOMEM);
  connection_.WantFlush();
}

void Http2Stream::Linger() {
  answered_ = true;
  connection_.loop().timers().Set(linger_timer_,
                                  connection_.loop().now() + connection_.owner_.limits.linger);
  // Releases the handler and its resources.
  if (const std::shared_ptr<StreamHandler> handler = std::move(handler_)) {
    handler->OnClosed(ResetCode::kNoError);
  }
}

void Http2Stream::Consume(size_t bytes) {
  connection_.Require(nghttp2_session_consume_stream(connection_.session_, id_, bytes));
  connection_.WantFlush();
}

void Http2Stream::SetWindow(size_t bytes) {
  connection_.Require(nghttp2_session_set_local_window_size(connection_.session_, NGHTTP2_FLAG_NONE,
                                                            id_, static_cast<int32_t>(bytes)));
  connection_.WantFlush();
}

}  // namespace phimap
