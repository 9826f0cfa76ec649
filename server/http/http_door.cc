#include "server/http/http_door.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/thread/steady_time.h"
#include "google/protobuf/message.h"
#include "server/http/api_formats.h"
#include "server/http/http_format.h"
#include "server/http/http_status.h"
#include "server/http/inference_format.h"
#include "server/http/openapi.h"
#include "server/http/routes.h"
#include "server/observe/log.h"
#include "server/observe/request_id.h"
#include "server/rpc/framed_message.h"
#include "server/rpc/revisions.h"

namespace phimap {
namespace {

using google::protobuf::Message;
using google::protobuf::MessageFactory;
using Code = absl::StatusCode;

// Answers that cost up to this much memory are written on the loop's thread: 32 KiB of numbers as
// JSON, at about a nanosecond a byte and forty a number, or 256 KiB of bytes, which are copied.
constexpr int64_t kWrittenHere = 520 << 10;

absl::Status Wrong(Code code, absl::string_view reason, absl::string_view field,
                   absl::string_view message) {
  return MakeError(code, reason, std::string(field), message);
}

// Bytes of a text and their charge, which is held until the last byte has been handed to the
// socket. The texts of an answer share one.
class ChargedText final : public OutputBytes {
 public:
  ChargedText(std::string text, std::shared_ptr<const RequestMemory::Charge> charge)
      : charge_(std::move(charge)), text_(std::move(text)) {}
  absl::string_view bytes() const override { return text_; }

 private:
  // Declared first, so that it is returned last.
  const std::shared_ptr<const RequestMemory::Charge> charge_;
  const std::string text_;
};

constexpr char kBuildIdKey[] = "phimap-build-id";

// What every answer says to browsers and caches.
using Headers = absl::InlinedVector<Header, 16>;
void AddCommon(Headers& headers, absl::string_view origin, absl::string_view cached = "no-store") {
  headers.push_back({"cache-control", cached});
  headers.push_back({"x-content-type-options", "nosniff"});
  if (origin.empty()) return;
  headers.push_back({"access-control-allow-origin", origin});
  headers.push_back({"access-control-expose-headers",
                     "x-request-id, phimap-request-id, phimap-revision, phimap-build-id, "
                     "retry-after, etag, content-disposition, "
                     "inference-header-content-length"});
  headers.push_back({"vary", "origin"});
}

// `origin`: the page's of another site that may read the answer, "" if there is none. `bodiless`:
// the request's method is HEAD. `build_id`: of the build that the call has begun.
void SendError(Stream& stream, const HttpError& error, absl::string_view origin,
               absl::string_view request_id = {}, bool bodiless = false,
               absl::string_view build_id = {}) {
  const std::string length = absl::StrCat(error.body.size());
  Headers headers = {
      {":status", error.status}, {"content-type", "application/json"}, {"content-length", length}};
  AddCommon(headers, origin);
  if (!error.retry_after.empty()) headers.push_back({"retry-after", error.retry_after});
  if (error.status == "401") headers.push_back({"www-authenticate", "Bearer"});
  if (!error.allow.empty()) headers.push_back({"allow", error.allow});
  if (!request_id.empty()) {
    headers.push_back({kRequestIdKey, request_id});
    headers.push_back({"phimap-request-id", request_id});
  }
  if (!build_id.empty()) headers.push_back({kBuildIdKey, build_id});
  stream.SendHeaders(headers, /*end=*/bodiless);
  if (bodiless) return;
  stream.Send(std::make_shared<OutputText>(error.body));
  stream.SendTrailers({});
}

// Answers a browser that asks, for a page of `origin`, whether the page may call.
void SendPreflight(Stream& stream, absl::string_view origin) {
  Headers headers = {{":status", "204"},
                     {"content-length", "0"},
                     {"access-control-allow-methods", "GET, POST, DELETE"},
                     {"access-control-allow-headers",
                      "authorization, content-type, accept, request-timeout, phimap-min-revision, "
                      "x-request-id, traceparent, inference-header-content-length"},
                     {"access-control-max-age", "600"}};
  AddCommon(headers, origin);
  stream.SendHeaders(headers, /*end=*/true);
}

// Answers with the description of the API, which is the same for every caller and holds nothing
// secret, so nobody is asked for a token. Its bytes are shared by all who read them.
void SendOpenApi(Stream& stream, const RequestHead& head, absl::string_view origin) {
  const absl::string_view verb = head.Find(":method");
  if (verb != "GET" && verb != "HEAD") {
    const absl::Status status = WrongVerb(kOpenApiPath, {"GET", "HEAD"}, verb);
    return SendError(stream, HttpErrorOf(status, "405"), origin);
  }
  const OpenApi& document = OpenApi::OfApi();
  const bool known = absl::StrContains(head.Find("if-none-match"), document.etag);
  const std::string length = absl::StrCat(document.text->bytes().size());
  Headers headers = {{":status", known ? "304" : "200"}, {"etag", document.etag}};
  if (!known) {
    headers.push_back({"content-type", "application/json"});
    headers.push_back({"content-length", length});
  }
  AddCommon(headers, origin, "no-cache");
  const bool bodiless = known || verb == "HEAD";
  stream.SendHeaders(headers, /*end=*/bodiless);
  if (bodiless) return;
  stream.Send(document.text);
  stream.SendTrailers({});
}

// A call behind a request over HTTP: the handler of the request's stream, and the stream of the
// call. Used on the loop's thread only.
class HttpCall final : public StreamHandler,
                       public Stream,
                       public std::enable_shared_from_this<HttpCall> {
 public:
  // `origin` and `bodiless`: as for SendError. `request_id`: the caller's, "" if it sent none.
  HttpCall(Stream& client, HttpTarget target, absl::string_view origin, bool bodiless,
           std::string request_id, const CallEnvironment& environment, CallerPointer caller)
      : client_(&client),
        loop_(client.loop()),
        target_(std::move(target)),
        origin_(origin),
        bodiless_(bodiless),
        request_id_(std::move(request_id)),
        build_id_(target_.format->build_id()),
        environment_(environment),
        caller_(std::move(caller)) {}

  // Gives the call its request's prefix, as if the body were a message of `bytes` bytes.
  void BeginBody(uint32_t bytes) { GiveMessage(bytes, {}); }

  // The body is a stream of messages. `uncut`: for bytes that wait until they can be cut.
  void BeginPieces(RequestMemory::Charge uncut) {
    cuts_ = true;
    uncut_charge_ = std::move(uncut);
    if (client_ != nullptr) client_->SetWindow(HttpFormat::kMaxUncutBytes);
    GivePieces();
  }

  // The request's side.
  void OnData(absl::string_view bytes) override {
    const std::shared_ptr<StreamHandler> call = call_;
    if (call == nullptr) return;
    if (!cuts_ || ended_) return call->OnData(bytes);
    uncut_.append(bytes.data(), bytes.size());
    GivePieces();
  }
  void OnRequestEnd() override {
    body_ended_ = true;
    if (cuts_) return GivePieces();
    if (const std::shared_ptr<StreamHandler> call = call_) call->OnRequestEnd();
  }
  void OnSent() override {
    const std::shared_ptr<StreamHandler> call = call_;
    if (call != nullptr && (target_.format->SendsEach() || body_bytes_ > 0)) call->OnSent();
  }
  void OnClosed(ResetCode code) override {
    client_ = nullptr;
    if (const std::shared_ptr<StreamHandler> call = std::move(call_)) call->OnClosed(code);
  }

  // The call's side.
  EventLoop& loop() override { return loop_; }
  const Peer& peer() const override { return client_->peer(); }
  void SetHandler(std::shared_ptr<StreamHandler> handler) override { call_ = std::move(handler); }
  void SendHeaders(absl::Span<const Header> headers, bool end) override {
    if (end) End(headers);
  }
  void Send(std::shared_ptr<const OutputBytes> bytes) override {
    if (target_.format->SendsEach()) return SendPart(*bytes);
    answer_ = std::move(bytes);
    answer_bytes_ = answer_->bytes().size();
    // A call with a stream goes on when its answer is sent. Only the last is.
    if (!target_.method->server_streaming() && !target_.method->client_streaming()) return;
    loop_.Post([self = shared_from_this()] {
      if (const std::shared_ptr<StreamHandler> call = self->call_) call->OnSent();
    });
  }
  void SendTrailers(absl::Span<const Header> trailers) override { End(trailers); }
  void Reset(ResetCode code) override {
    if (client_ != nullptr) client_->Reset(code);
  }
  void EndConnection() override {
    if (client_ != nullptr) client_->EndConnection();
  }
  absl::Time unread_since() const override {
    return client_ == nullptr ? absl::InfiniteFuture() : client_->unread_since();
  }
  // The call compares what is unsent with the size of its own answer, so this is the share of that.
  size_t unsent_bytes() const override {
    if (client_ == nullptr) return 0;
    if (target_.format->SendsEach() || answer_bytes_ == 0) return client_->unsent_bytes();
    if (body_bytes_ == 0) return answer_bytes_;
    return static_cast<size_t>(static_cast<double>(client_->unsent_bytes()) /
                               static_cast<double>(body_bytes_) *
                               static_cast<double>(answer_bytes_));
  }
  void Consume(size_t bytes) override {
    const size_t own = std::min(bytes, own_bytes_);
    own_bytes_ -= own;
    if (client_ != nullptr && bytes > own) client_->Consume(bytes - own);
    if (!cuts_) return;
    given_ -= std::min(given_, bytes - own);
    if (given_ + own_bytes_ > 0 || giving_) return;
    // Not at once: the call is still reading what it was given.
    loop_.Post([self = shared_from_this()] { self->GivePieces(); });
  }
  void NoteAdmitted() override {
    if (client_ != nullptr) client_->NoteAdmitted();
  }
  void SetWindow(size_t bytes) override {
    if (client_ != nullptr && !cuts_) client_->SetWindow(bytes);
  }

 private:
  static absl::string_view Find(absl::Span<const Header> fields, absl::string_view name) {
    for (const Header& field : fields) {
      if (field.name == name) return field.value;
    }
    return {};
  }

  // Gives the call the prefix of a message of `bytes` bytes, and `text`, its first ones.
  void GiveMessage(uint32_t bytes, absl::string_view text) {
    const std::shared_ptr<StreamHandler> call = call_;
    if (call == nullptr) return;
    char prefix[MessageReader::kPrefixBytes] = {0};
    for (int i = 0; i < 4; ++i) prefix[1 + i] = static_cast<char>(bytes >> (24 - 8 * i));
    own_bytes_ += sizeof(prefix);
    given_ += text.size();
    call->OnData(absl::string_view(prefix, sizeof(prefix)));
    if (!text.empty()) call->OnData(text);
  }

  // Gives the call what can be cut off the body, a message at a time: the next when it has taken
  // the one before. So what it has not taken yet stays in the client's window.
  void GivePieces() {
    if (giving_ || ended_) return;
    giving_ = true;
    while (given_ + own_bytes_ == 0 && client_ != nullptr && !ended_) {
      const std::optional<HttpPiece> piece = target_.format->Cut(uncut_, body_ended_);
      if (!piece.has_value()) break;
      const std::string text = uncut_.substr(0, piece->bytes);
      uncut_.erase(0, piece->bytes);
      if (piece->is_message) {
        GiveMessage(static_cast<uint32_t>(text.size()), text);
      } else {
        client_->Consume(text.size());
      }
    }
    giving_ = false;
    if (given_ + own_bytes_ > 0 || !body_ended_ || request_ended_) return;
    request_ended_ = true;
    uncut_charge_.Release();
    if (const std::shared_ptr<StreamHandler> call = call_) call->OnRequestEnd();
  }

  // Answers with the call's status, which gRPC's trailers state, or with its message.
  void End(absl::Span<const Header> trailers) {
    ended_ = true;
    if (client_ == nullptr) return;
    int code = 0;
    static_cast<void>(absl::SimpleAtoi(Find(trailers, "grpc-status"), &code));
    if (code != 0) {
      std::string details;
      static_cast<void>(absl::Base64Unescape(Find(trailers, "grpc-status-details-bin"), &details));
      std::string message;
      static_cast<void>(PercentDecode(Find(trailers, "grpc-message"), message));
      return EndWithError(target_.format->Error(HttpErrorOf(code, message, details)),
                          Find(trailers, "phimap-request-id"));
    }
    if (target_.format->SendsEach() && part_sent_) return client_->SendTrailers({});
    if (answer_ == nullptr) return client_->EndConnection();
    revision_ = std::string(Find(trailers, kRevisionKey));
    const int64_t cost = target_.format->AnswerCost(static_cast<int64_t>(answer_->bytes().size()));
    std::optional<RequestMemory::Charge> charge = environment_.memory.TakeForAnswer(caller_, cost);
    if (!charge.has_value() && cost > kWrittenHere) {
      return EndWithError(target_.format->Error(
          HttpErrorOf(environment_.memory.Full(caller_, "the answer", cost))));
    }
    if (!charge.has_value()) charge = environment_.memory.TakeUnconditionally(caller_, cost);
    if (cost <= kWrittenHere) return SendAnswer(Write(*answer_), *std::move(charge));
    WriteElsewhere(*std::move(charge));
  }

  void EndWithError(const HttpError& error, absl::string_view request_id = {}) {
    if (request_id.empty()) request_id = request_id_;
    if (!part_sent_) return SendError(*client_, error, origin_, request_id, bodiless_, build_id_);
    std::string late = target_.format->LateError(error);
    if (late.empty()) return client_->Reset(ResetCode::kInternalError);
    client_->Send(std::make_shared<OutputText>(std::move(late)));
    client_->SendTrailers({});
  }

  HttpAnswer Write(const OutputBytes& framed) const {
    const absl::string_view bytes = framed.bytes().substr(MessageReader::kPrefixBytes);
    const std::unique_ptr<Message> message(
        MessageFactory::generated_factory()->GetPrototype(target_.method->output_type())->New());
    if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      HttpError error = target_.format->Error(
          HttpErrorOf(absl::InternalError("the answer has a text that is no UTF-8")));
      return {{{"content-type", "application/json"}}, std::move(error.body), {}, error.status};
    }
    return target_.format->Write(*message);
  }

  void WriteElsewhere(RequestMemory::Charge charge) {
    const auto shared = std::make_shared<RequestMemory::Charge>(std::move(charge));
    const std::shared_ptr<EventLoop> loop = loop_.shared_from_this();
    const absl::Status queued = environment_.parsing.Submit(
        [self = shared_from_this(), loop, shared, framed = std::move(answer_)] {
          std::optional<HttpAnswer> answer;
          try {
            answer = self->Write(*framed);
          } catch (const std::bad_alloc&) {
            loop->NoteMemoryFailures(1);
          }
          loop->Post([self, shared, answer = std::move(answer)]() mutable {
            if (self->client_ == nullptr) return;
            if (!answer.has_value()) return self->client_->EndConnection();
            self->SendAnswer(*std::move(answer), std::move(*shared));
          });
        },
        caller_);
    if (!queued.ok()) EndWithError(target_.format->Error(HttpErrorOf(queued)));
  }

  // `length`: of the body; "" if it is not known.
  void SendHead(const HttpAnswer& answer, const std::string& length) {
    Headers headers = {{":status", answer.status}};
    if (!length.empty()) headers.push_back({"content-length", length});
    for (const auto& [name, value] : answer.headers) headers.push_back({name, value});
    AddCommon(headers, origin_);
    if (!request_id_.empty()) headers.push_back({kRequestIdKey, request_id_});
    if (!revision_.empty()) headers.push_back({kRevisionKey, revision_});
    if (!build_id_.empty()) headers.push_back({kBuildIdKey, build_id_});
    client_->SendHeaders(headers, /*end=*/bodiless_);
  }

  void SendAnswer(HttpAnswer answer, RequestMemory::Charge charge) {
    body_bytes_ = answer.body.size();
    size_t held = answer.body.capacity();
    for (const std::string& part : answer.more) {
      body_bytes_ += part.size();
      held += part.capacity();
    }
    SendHead(answer, absl::StrCat(body_bytes_));
    if (bodiless_) return;
    charge.ShrinkTo(std::min(charge.bytes(), static_cast<int64_t>(held)));
    const auto shared = std::make_shared<const RequestMemory::Charge>(std::move(charge));
    client_->Send(std::make_shared<ChargedText>(std::move(answer.body), shared));
    for (std::string& part : answer.more) {
      client_->Send(std::make_shared<ChargedText>(std::move(part), shared));
    }
    client_->SendTrailers({});
  }

  // Sends one of the answers. The call sends the next when this one is sent.
  void SendPart(const OutputBytes& framed) {
    if (client_ == nullptr) return;
    RequestMemory::Charge charge = environment_.memory.TakeUnconditionally(
        caller_, target_.format->AnswerCost(static_cast<int64_t>(framed.bytes().size())));
    HttpAnswer answer = Write(framed);
    if (!std::exchange(part_sent_, true)) SendHead(answer, "");
    // The end of the exchange ends the call.
    if (bodiless_) return;
    charge.ShrinkTo(std::min(charge.bytes(), static_cast<int64_t>(answer.body.capacity())));
    client_->Send(std::make_shared<ChargedText>(
        std::move(answer.body), std::make_shared<const RequestMemory::Charge>(std::move(charge))));
  }

  // Null after the request's stream has ended.
  Stream* client_;
  EventLoop& loop_;
  const HttpTarget target_;
  const std::string origin_;
  const bool bodiless_;
  const std::string request_id_;
  const std::string build_id_;
  const CallEnvironment& environment_;
  const CallerPointer caller_;
  std::shared_ptr<StreamHandler> call_;
  // Bytes that the call was given beside the body's, and has not consumed.
  size_t own_bytes_ = 0;
  // Whether the body is cut into messages; bytes of it that were not given to the call yet, with
  // their charge; and bytes that were given and not consumed.
  bool cuts_ = false;
  RequestMemory::Charge uncut_charge_;
  std::string uncut_;
  size_t given_ = 0;
  bool giving_ = false;
  // The client has sent the whole body; the call knows; the call has ended.
  bool body_ended_ = false;
  bool request_ended_ = false;
  bool ended_ = false;
  // The answer's message, with its prefix.
  std::shared_ptr<const OutputBytes> answer_;
  // Its size, and that of the body that is sent in its place; 0 until there is one.
  size_t answer_bytes_ = 0;
  size_t body_bytes_ = 0;
  bool part_sent_ = false;
  std::string revision_;
};

// Whether a page of another site sends the request, as far as its browser says so.
absl::Status CheckSite(const RequestHead& head) {
  const absl::string_view site = head.Find("sec-fetch-site");
  const absl::string_view origin = head.Find("origin");
  absl::string_view host = origin;
  if (!absl::ConsumePrefix(&host, "https://")) absl::ConsumePrefix(&host, "http://");
  // Opening the page itself is no call: a link in a chat or on a wiki may lead to it, and the
  // browser marks what the link asks for as cross-site. The page is the same for everybody, holds
  // nothing of the store, may not be framed, and does nothing that its reader does not ask for, so
  // the site with the link learns and causes nothing; what the page then calls is called by its own
  // site. A link to a path of the API stays refused, and so does all that a page of another site
  // loads or sends.
  const bool foreign_site =
      !site.empty() && site != "same-origin" && site != "none" && !PageFiles::IsOpened(head);
  const bool foreign_origin = !origin.empty() && host != head.Find(":authority");
  if (!foreign_site && !foreign_origin) return absl::OkStatus();
  return Wrong(Code::kPermissionDenied, reason::kSiteForeign,
               foreign_origin ? "origin" : "sec-fetch-site",
               absl::StrCat("a page of another site, ", Quoted(foreign_origin ? origin : site),
                            ", may not call this server; --http_origins lists sites that may"));
}

// Checks how the body is announced, and returns its length.
absl::StatusOr<uint32_t> LengthOf(const RequestHead& head, bool ended) {
  if (ended) return 0;
  uint32_t length = 0;
  if (absl::SimpleAtoi(head.Find("content-length"), &length)) return length;
  if (!head.Find("content-length").empty()) {
    return Wrong(Code::kResourceExhausted, reason::kMessageTooLarge, "content-length",
                 absl::StrCat("expected a body below 4 GiB, got one of ",
                              head.Find("content-length"), " bytes"));
  }
  return Wrong(Code::kInvalidArgument, reason::kHttpHeaderInvalid, "content-length",
               absl::StrCat("expected the length of the body in bytes, below 4 GiB, in the header "
                            "content-length, got ",
                            Quoted(head.Find("content-length"))));
}

// Returns the deadline that the header request-timeout sets, in seconds, or `deadline`, which
// gRPC's header sets.
absl::StatusOr<absl::Time> DeadlineOf(const RequestHead& head, absl::Time deadline) {
  const absl::string_view text = head.Find("request-timeout");
  if (text.empty()) return deadline;
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds) && seconds >= 0) {
    return std::min(deadline, SteadyNow() + absl::Seconds(seconds));
  }
  return Wrong(Code::kInvalidArgument, reason::kTimeoutInvalid, "request-timeout",
               absl::StrCat("expected a number of seconds, as 2.5, got ", Quoted(text)));
}

}  // namespace

absl::Status HttpDoor::CheckOrigin(absl::string_view flag, absl::string_view origin) {
  absl::string_view host = origin;
  const bool scheme =
      absl::ConsumePrefix(&host, "https://") || absl::ConsumePrefix(&host, "http://");
  if (scheme && !host.empty() && host.find_first_of("/?#@*, ") == absl::string_view::npos &&
      absl::AsciiStrToLower(host) == host) {
    return absl::OkStatus();
  }
  return Wrong(Code::kInvalidArgument, reason::kAddressInvalid, flag,
               absl::StrCat("expected an origin as browsers send it, such as "
                            "https://app.example.com, got ",
                            Quoted(origin)));
}

void HttpDoor::LogRefusal(const Stream& stream, const absl::Status& status, const HttpError& error,
                          const RequestId& request_id) const {
  const LoggedError logged = ErrorForLog(status);
  int number = 0;
  static_cast<void>(absl::SimpleAtoi(error.status, &number));
  dispatcher_.environment().logger.Log(LogLevel::kInfo, "http_refused",
                                       {{"peer", stream.peer().address},
                                        {"status", number},
                                        {"reason", logged.reason},
                                        {"field", logged.field},
                                        {"request_id", request_id.Text()},
                                        {"trace_id", request_id.TraceId()},
                                        {"error", logged.message}});
}

void HttpDoor::OnRequest(Stream& stream, const RequestHead& head, bool ended) {
  const absl::string_view sent_origin = head.Find("origin");
  const absl::string_view origin = origins_.contains(sent_origin) ? sent_origin : "";
  const bool is_inference = IsInferencePath(head.Find(":path"));
  const RequestId request_id(CallerIdsOf(head));
  const auto answer = [&](const HttpError& error) {
    SendError(stream, is_inference ? InferenceError(error) : error, origin, request_id.Text(),
              head.Find(":method") == "HEAD");
  };
  // Refuses what is no call, or not yet.
  const auto refuse = [&](const absl::Status& status, absl::string_view http_status = {}) {
    const HttpError error = HttpErrorOf(status, http_status);
    LogRefusal(stream, status, error, request_id);
    answer(error);
  };
  if (head.too_large) {
    return refuse(Wrong(Code::kResourceExhausted, reason::kHeadersTooLarge, "",
                        "the request's head is over the limit of 16384 bytes"),
                  "431");
  }
  if (!names_.MayCall(head)) {
    return refuse(Wrong(Code::kInvalidArgument, reason::kHttpHeaderInvalid, "host",
                        absl::StrCat("expected an IP address, a name without a dot or one of "
                                     "--http_hosts in the header Host, got ",
                                     Quoted(head.Find(":authority")))),
                  "421");
  }
  if (origin.empty()) {
    if (const absl::Status site = CheckSite(head); !site.ok()) return refuse(site);
  } else if (head.Find(":method") == "OPTIONS") {
    return SendPreflight(stream, origin);
  }
  if (PageFiles::Serves(head)) return page_.Answer(stream, head);
  const absl::string_view path = head.Find(":path");
  if (path.substr(0, path.find('?')) == kOpenApiPath) return SendOpenApi(stream, head, origin);
  HttpTarget target;
  if (const std::optional<HttpRefusal> refusal =
          is_inference ? FindInferenceTarget(head, target) : FindApiTarget(head, target)) {
    return refuse(refusal->status, refusal->http_status);
  }
  const bool cut = target.method->client_streaming();
  const absl::StatusOr<uint32_t> length = cut ? 0 : LengthOf(head, ended);
  if (!length.ok()) {
    return refuse(length.status(), absl::IsInvalidArgument(length.status()) ? "411" : "");
  }
  absl::StatusOr<Admission> admission = dispatcher_.Admit(
      stream, head,
      absl::StrCat("/", target.method->service()->full_name(), "/", target.method->name()),
      request_id);
  // The dispatcher has logged it.
  if (!admission.ok()) return answer(HttpErrorOf(admission.status()));
  const absl::StatusOr<absl::Time> deadline = DeadlineOf(head, admission->deadline);
  if (!deadline.ok()) return refuse(deadline.status());
  admission->deadline = *deadline;
  const CallerPointer caller = admission->share.use();
  RequestMemory& memory = dispatcher_.environment().memory;
  std::optional<RequestMemory::Charge> uncut;
  if (cut) {
    uncut = memory.Take(caller, HttpFormat::kMaxUncutBytes);
    if (!uncut.has_value()) {
      return refuse(memory.Full(caller, "the request", HttpFormat::kMaxUncutBytes));
    }
  }
  const std::shared_ptr<RequestParser> parser = target.format;
  const auto call = std::make_shared<HttpCall>(
      stream, std::move(target), origin, head.Find(":method") == "HEAD",
      request_id.from_caller() ? request_id.Text() : "", dispatcher_.environment(), caller);
  stream.SetHandler(call);
  dispatcher_.Begin(*call, *std::move(admission), parser);
  cut ? call->BeginPieces(*std::move(uncut)) : call->BeginBody(*length);
}

}  // namespace phimap
