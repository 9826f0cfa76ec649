#include "server/rpc/transport/http1_session.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <new>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"

namespace phimap {
namespace {

// Most bytes of one chunk of an answer.
constexpr size_t kChunkBytes = 64 << 10;
// What stops the parser for good. (1 after a head would mean that no body follows.)
constexpr int kStop = -1;

// Whether the name of a header may have this character (RFC 9110).
bool IsTokenCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         absl::StrContains("!#$%&'*+-.^_`|~", c);
}

absl::string_view ReasonOf(absl::string_view status) {
  int number = 0;
  static_cast<void>(absl::SimpleAtoi(status, &number));
  const char* const text = http_status_str(static_cast<http_status>(number));
  return text == nullptr || absl::string_view(text) == "<unknown>" ? "" : text;
}

}  // namespace

// Functions for http-parser. No exception may pass through it, which is C: if there is no memory,
// the connection ends.
struct Http1Session::Callbacks {
  static Http1Session& Of(http_parser* parser) { return *static_cast<Http1Session*>(parser->data); }

  template <typename Work>
  static int Guarded(http_parser* parser, const Work& work) {
    try {
      return work(Of(parser));
    } catch (const std::bad_alloc&) {
      Of(parser).connection_.CondemnWithoutMemory();
      return kStop;
    }
  }
  template <int (Http1Session::*kEvent)()>
  static int OnEvent(http_parser* parser) {
    return Guarded(parser, [](Http1Session& session) { return (session.*kEvent)(); });
  }
  template <int (Http1Session::*kPart)(absl::string_view)>
  static int OnPart(http_parser* parser, const char* data, size_t size) {
    const absl::string_view part(data, size);
    return Guarded(parser, [part](Http1Session& session) { return (session.*kPart)(part); });
  }

  static const http_parser_settings& All() {
    static const http_parser_settings all = [] {
      http_parser_settings settings;
      http_parser_settings_init(&settings);
      settings.on_message_begin = OnEvent<&Http1Session::OnBegin>;
      settings.on_url = OnPart<&Http1Session::OnUrl>;
      settings.on_header_field = OnPart<&Http1Session::OnField>;
      settings.on_header_value = OnPart<&Http1Session::OnValue>;
      settings.on_headers_complete = OnEvent<&Http1Session::OnHead>;
      settings.on_body = OnPart<&Http1Session::OnBody>;
      settings.on_message_complete = OnEvent<&Http1Session::OnEnd>;
      return settings;
    }();
    return all;
  }
};

void Http1Stream::SendHeaders(absl::Span<const Header> headers, bool end) {
  PHIMAP_CHECK(!headers_sent_ && !headers.empty() && headers[0].name == ":status");
  headers_sent_ = true;
  const absl::string_view status = headers[0].value;
  const bool bodiless = status == "204" || status == "304" || absl::StartsWith(status, "1");
  bool has_length = false;
  std::string text = absl::StrCat("HTTP/1.1 ", status, " ", ReasonOf(status), "\r\n");
  for (const Header& header : headers.subspan(1)) {
    has_length = has_length || header.name == "content-length";
    absl::StrAppend(&text, header.name, ": ", header.value, "\r\n");
  }
  framing_ = Framing::kLength;
  if (!has_length && !bodiless) {
    if (end) {
      absl::StrAppend(&text, "content-length: 0\r\n");
    } else if (http_1_0_) {
      framing_ = Framing::kUntilEnd;
      session_.closing_ = true;
    } else {
      framing_ = Framing::kChunks;
      absl::StrAppend(&text, "transfer-encoding: chunked\r\n");
    }
  }
  head_ = std::move(text);
  answer_complete_ = end;
  connection_.WantFlush();
}

void Http1Stream::Send(std::shared_ptr<const OutputBytes> bytes) {
  PHIMAP_CHECK(headers_sent_ && !answer_complete_);
  if (bytes->bytes().empty() || is_head_request_) return;
  if (body_.empty()) progress_ = connection_.loop().now();
  body_.Add(std::move(bytes));
  connection_.WantFlush();
}

void Http1Stream::SendTrailers(absl::Span<const Header>) {
  PHIMAP_CHECK(headers_sent_ && !answer_complete_);
  answer_complete_ = true;
  connection_.WantFlush();
}

void Http1Stream::Reset(ResetCode) {
  connection_.Condemn();
  connection_.WantFlush();
}

void Http1Stream::EndConnection() {
  connection_.CondemnWithoutMemory();
  connection_.WantFlush();
}

void Http1Stream::Consume(size_t bytes) {
  unconsumed_ -= std::min(unconsumed_, bytes);
  connection_.WantFlush();
}

std::optional<size_t> HeadLines::Take(absl::string_view bytes) {
  size_t taken = 0;
  for (; taken < bytes.size() && !over_; ++taken) {
    const char c = bytes[taken];
    if (c == '\n') {
      if (last_ != '\r') return std::nullopt;
      const bool blank = line_bytes_ == 1;
      over_ = begun_ && blank;
      begun_ = begun_ || !blank;
      line_bytes_ = 0;
    } else {
      const bool folded = begun_ && line_bytes_ == 0 && (c == ' ' || c == '\t');
      const bool two_blanks = !begun_ && c == ' ' && last_ == ' ';
      if (last_ == '\r' || folded || two_blanks) return std::nullopt;
      ++line_bytes_;
    }
    last_ = c;
  }
  return taken;
}

bool ChunkFraming::Take(absl::string_view bytes) {
  while (!bytes.empty() && !trailers_.over()) {
    const char c = bytes[0];
    size_t taken = 1;
    switch (part_) {
      case Part::kSize:
        if (absl::ascii_isxdigit(static_cast<unsigned char>(c)) && digits_ < 16) {
          const int digit =
              absl::ascii_isdigit(static_cast<unsigned char>(c)) ? c - '0' : (c | 32) - 'a' + 10;
          left_ = (left_ << 4) | static_cast<uint64_t>(digit);
          ++digits_;
        } else if ((c == '\r' || c == ';') && digits_ > 0) {
          part_ = c == ';' ? Part::kExtension : Part::kSizeEnd;
        } else {
          return false;
        }
        break;
      case Part::kExtension:
        if (c == '\r') {
          part_ = Part::kSizeEnd;
        } else if (absl::ascii_iscntrl(static_cast<unsigned char>(c)) ||
                   dropped_bytes_left_-- == 0) {
          return false;
        }
        break;
      case Part::kSizeEnd:
        if (c != '\n') return false;
        digits_ = 0;
        part_ = left_ == 0 ? Part::kTrailers : Part::kData;
        break;
      case Part::kData:
        taken = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size()));
        left_ -= taken;
        if (left_ == 0) part_ = Part::kDataEnd;
        break;
      case Part::kDataEnd:
        if (c != '\r') return false;
        part_ = Part::kDataLineEnd;
        break;
      case Part::kDataLineEnd:
        if (c != '\n') return false;
        part_ = Part::kSize;
        break;
      case Part::kTrailers: {
        const std::optional<size_t> lines = trailers_.Take(bytes);
        if (!lines.has_value() || *lines > dropped_bytes_left_) return false;
        dropped_bytes_left_ -= *lines;
        taken = *lines;
        break;
      }
    }
    bytes.remove_prefix(taken);
  }
  return true;
}

Http1Session::Http1Session(Connection& connection)
    : connection_(connection), closing_(connection.door().one_answer) {
  http_parser_init(&parser_, HTTP_REQUEST);
  parser_.data = this;
}

Session::Fed Http1Session::Feed(absl::string_view bytes) {
  size_t used = 0;
  while (used < bytes.size() && !over_) {
    absl::string_view part = bytes.substr(used);
    if (stream_ == nullptr) {
      const std::optional<size_t> head = lines_.Take(part);
      if (!head.has_value()) {
        Refuse("400",
               "expected single blanks in the first line, CR LF at the end of each line of the "
               "head, and no line that begins with a blank");
        break;
      }
      part = part.substr(0, *head);
    } else if (chunks_.has_value() && !chunks_->Take(part)) {
      Refuse(
          "400",
          "expected chunks of a size in hexadecimal digits, CR LF behind each size and behind the "
          "bytes of each chunk, and at most 16 KiB of extensions and trailers");
      break;
    }
    const size_t parsed =
        http_parser_execute(&parser_, &Callbacks::All(), part.data(), part.size());
    used += parsed;
    const http_errno error = HTTP_PARSER_ERRNO(&parser_);
    if (error == HPE_OK && parsed == part.size()) continue;
    if (error == HPE_OK || error == HPE_PAUSED) return {.used = used};
    if (!over_) {
      const bool too_large = error == HPE_HEADER_OVERFLOW;
      Refuse(too_large ? "431" : "400", too_large ? "the head of the request is over 80 KiB"
                                                  : absl::StrCat("the request is no HTTP/1.1: ",
                                                                 http_errno_description(error)));
    }
    break;
  }
  return {.used = bytes.size()};
}

bool Http1Session::blocked() const {
  return stream_ != nullptr &&
         (stream_->request_ended_ || stream_->unconsumed_ >= stream_->window_);
}

size_t Http1Session::held_bytes() const {
  return sizeof(Http1Session) + sizeof(Http1Stream) + head_.list_bytes() + path_.size() +
         field_.size() + value_.size();
}

void Http1Session::RefuseCalls() {
  closing_ = true;
  if (stream_ == nullptr) over_ = true;
}

void Http1Session::EndForFault(ClientFault fault, absl::string_view why) {
  if (connection_.Condemn()) return;
  connection_.owner().blamed(connection_.peer(), fault, why);
}

void Http1Session::CloseStreams() { CloseStream(ResetCode::kCancel); }

void Http1Session::CloseStream(ResetCode code) {
  const std::unique_ptr<Http1Stream> stream = std::move(stream_);
  if (stream == nullptr) return;
  if (const std::shared_ptr<StreamHandler> handler = std::move(stream->handler_)) {
    handler->OnClosed(code);
  }
}

bool Http1Session::Frame() {
  OutputQueue& output = connection_.output();
  while (stream_ != nullptr && stream_->headers_sent_ && !connection_.OutputFull()) {
    Http1Stream& stream = *stream_;
    if (!stream.head_.empty()) {
      // Nobody reads the rest of a request that was answered early, so the connection cannot go on.
      if (stream.answer_complete_ && !stream.request_ended_) closing_ = true;
      const char* const connection = closing_           ? "connection: close\r\n"
                                     : stream.http_1_0_ ? "connection: keep-alive\r\n"
                                                        : "";
      output.Append(absl::StrCat(std::exchange(stream.head_, ""), connection, "\r\n"));
    }
    if (!stream.body_.empty()) {
      const size_t size = std::min(stream.body_.bytes(), kChunkBytes);
      const bool chunks = stream.framing_ == Http1Stream::Framing::kChunks;
      if (chunks) output.Append(absl::StrCat(absl::Hex(size), "\r\n"));
      stream.body_.Move(size, output);
      if (chunks) output.Append("\r\n");
      stream.progress_ = connection_.loop().now();
      if (!stream.body_.empty() || stream.answer_complete_) continue;
      if (const std::shared_ptr<StreamHandler> handler = stream.handler_) handler->OnSent();
      continue;
    }
    if (!stream.answer_complete_) break;
    if (stream.framing_ == Http1Stream::Framing::kChunks && !stream.is_head_request_) {
      output.Append("0\r\n\r\n");
    }
    FinishExchange();
  }
  return true;
}

void Http1Session::FinishExchange() {
  if (!stream_->request_ended_) closing_ = true;
  if (closing_) over_ = true;
  lines_ = HeadLines();
  chunks_.reset();
  CloseStream(ResetCode::kNoError);
  if (!over_) http_parser_pause(&parser_, 0);
}

int Http1Session::Refuse(absl::string_view status, absl::string_view why) {
  over_ = true;
  closing_ = true;
  connection_.owner().blamed(connection_.peer(), ClientFault::kProtocol, why);
  const bool answered = stream_ != nullptr && stream_->headers_sent_ && stream_->head_.empty();
  CloseStream(ResetCode::kProtocolError);
  if (!answered) {
    connection_.output().Append(absl::StrCat(
        "HTTP/1.1 ", status, " ", ReasonOf(status), "\r\ncontent-type: text/plain\r\n",
        "content-length: ", why.size() + 1, "\r\nconnection: close\r\n\r\n", why, "\n"));
  }
  connection_.WantFlush();
  return kStop;
}

int Http1Session::OnBegin() {
  head_ = RequestHead();
  path_.clear();
  field_.clear();
  value_.clear();
  value_began_ = false;
  return 0;
}

bool Http1Session::HasRoom(size_t bytes) {
  const size_t held =
      head_.list_bytes() + path_.size() + field_.size() + value_.size() + RequestHead::kFieldBytes;
  if (held + bytes <= connection_.owner().limits.max_header_bytes) return true;
  head_.too_large = true;
  return false;
}

int Http1Session::OnUrl(absl::string_view part) {
  if (HasRoom(part.size())) path_.append(part.data(), part.size());
  return 0;
}

int Http1Session::OnField(absl::string_view part) {
  if (value_began_) AddField();
  if (HasRoom(part.size())) field_.append(part.data(), part.size());
  return 0;
}

int Http1Session::OnValue(absl::string_view part) {
  // Trailers of a request are dropped.
  if (stream_ != nullptr) return 0;
  value_began_ = true;
  if (HasRoom(part.size())) value_.append(part.data(), part.size());
  return 0;
}

void Http1Session::AddField() {
  // Debian builds http-parser so that it takes a blank in a name, which others may read otherwise.
  names_valid_ = names_valid_ && absl::c_all_of(field_, IsTokenCharacter);
  absl::AsciiStrToLower(&field_);
  if (!field_.empty()) head_.Add(field_, absl::StripAsciiWhitespace(value_));
  field_.clear();
  value_.clear();
  value_began_ = false;
}

int Http1Session::OnHead() {
  if (value_began_ || !field_.empty()) AddField();
  connection_.NoteGreeting();
  // http-parser would take what follows an upgrade for another protocol. None is offered here, so
  // the header is ignored, as HTTP allows.
  parser_.upgrade = 0;
  const bool http_1_0 = parser_.http_major == 1 && parser_.http_minor == 0;
  if (parser_.http_major != 1 || parser_.http_minor > 1) {
    return Refuse("505", "expected HTTP/1.1");
  }
  if (parser_.method == HTTP_CONNECT || !absl::StartsWith(path_, "/")) {
    return Refuse("400", "expected a path that begins with / after the method");
  }
  if (!std::exchange(names_valid_, true)) {
    return Refuse("400", "a header's name has a character that no name may have");
  }
  const int hosts = head_.Count("host");
  if (hosts > 1 || (hosts == 0 && !http_1_0)) {
    return Refuse("400", absl::StrCat("expected one header host, got ", hosts));
  }
  const absl::string_view coding = head_.Find("transfer-encoding");
  if (head_.Count("transfer-encoding") > 1 ||
      (!coding.empty() && !absl::EqualsIgnoreCase(coding, "chunked"))) {
    return Refuse("501", "expected chunked, or nothing, in the header transfer-encoding");
  }
  if (http_1_0 && !coding.empty()) {
    return Refuse("400", "expected no header transfer-encoding in a request of HTTP/1.0");
  }
  const std::string expected = absl::AsciiStrToLower(head_.Find("expect"));
  if (!expected.empty() && expected != "100-continue") {
    return Refuse("417", "expected 100-continue in the header expect");
  }
  if (http_should_keep_alive(&parser_) == 0) closing_ = true;
  const auto method = static_cast<http_method>(parser_.method);
  head_.Add(":method", http_method_str(method));
  head_.Add(":path", path_);
  head_.Add(":authority", std::string(head_.Find("host")));
  const bool has_body = (parser_.flags & F_CHUNKED) != 0 ||
                        (parser_.content_length > 0 &&
                         parser_.content_length != std::numeric_limits<uint64_t>::max());
  if ((parser_.flags & F_CHUNKED) != 0) {
    chunks_.emplace(connection_.owner().limits.max_header_bytes);
  }
  stream_ = std::make_unique<Http1Stream>(*this, connection_);
  stream_->window_ = connection_.owner().limits.stream_window;
  stream_->is_head_request_ = method == HTTP_HEAD;
  stream_->http_1_0_ = http_1_0;
  stream_->request_ended_ = !has_body;
  const RequestHead head = std::exchange(head_, RequestHead());
  connection_.acceptor().OnRequest(*stream_, head, !has_body);
  if (stream_->handler_ == nullptr && !connection_.MayBeRefused()) {
    EndForFault(ClientFault::kRefusedCalls,
                "this address made too many calls that were refused; correct the client's token");
    return kStop;
  }
  if (!expected.empty() && has_body && !stream_->headers_sent_ && !http_1_0) {
    connection_.output().Append("HTTP/1.1 100 Continue\r\n\r\n");
    connection_.WantFlush();
  }
  return 0;
}

int Http1Session::OnBody(absl::string_view bytes) {
  if (stream_ == nullptr || stream_->handler_ == nullptr || stream_->answer_complete_) return 0;
  stream_->unconsumed_ += bytes.size();
  const std::shared_ptr<StreamHandler> handler = stream_->handler_;
  handler->OnData(bytes);
  return 0;
}

int Http1Session::OnEnd() {
  if (stream_ == nullptr) return 0;
  stream_->request_ended_ = true;
  // The next request waits for this answer.
  http_parser_pause(&parser_, 1);
  if (const std::shared_ptr<StreamHandler> handler = stream_->handler_) handler->OnRequestEnd();
  return 0;
}

}  // namespace phimap
