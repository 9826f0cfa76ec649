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
#include "server/http/http_status.h"
#include "server/http/json.h"
#include "server/http/routes.h"
#include "server/rpc/framed_message.h"
#include "server/rpc/revisions.h"

namespace phimap {
namespace {

using google::protobuf::Message;
using google::protobuf::MessageFactory;
using Code = absl::StatusCode;

// Answers up to this size are printed on the loop's thread, at about a nanosecond a byte and forty
// a number.
constexpr size_t kPrintedHere = 32 << 10;

absl::Status Wrong(Code code, absl::string_view reason, absl::string_view field,
                   absl::string_view message) {
  return MakeError(code, reason, std::string(field), message);
}

// Bytes of a text and their charge, which is held until the last byte has been handed to the
// socket.
class ChargedText final : public OutputBytes {
 public:
  ChargedText(std::string text, RequestMemory::Charge charge)
      : charge_(std::move(charge)), text_(std::move(text)) {}
  absl::string_view bytes() const override { return text_; }

 private:
  // Declared first, so that it is returned last.
  const RequestMemory::Charge charge_;
  const std::string text_;
};

// What every answer says to browsers and caches.
using Headers = absl::InlinedVector<Header, 12>;
void AddCommon(Headers& headers) {
  headers.push_back({"cache-control", "no-store"});
  headers.push_back({"x-content-type-options", "nosniff"});
}

void SendError(Stream& stream, const HttpError& error, absl::string_view request_id = {}) {
  const std::string length = absl::StrCat(error.body.size());
  Headers headers = {
      {":status", error.status}, {"content-type", "application/json"}, {"content-length", length}};
  AddCommon(headers);
  if (!error.retry_after.empty()) headers.push_back({"retry-after", error.retry_after});
  if (error.status == "401") headers.push_back({"www-authenticate", "Bearer"});
  if (!request_id.empty()) headers.push_back({"phimap-request-id", request_id});
  stream.SendHeaders(headers, /*end=*/false);
  stream.Send(std::make_shared<OutputText>(error.body));
  stream.SendTrailers({});
}

// A body of JSON as the request of the route's method.
class JsonRequest final : public RequestParser {
 public:
  explicit JsonRequest(Route route) : route_(std::move(route)) {}

  int64_t Cost(absl::string_view body) const override {
    return JsonCost(static_cast<int64_t>(body.size()));
  }
  absl::Status Parse(absl::string_view body,
                     google::protobuf::MessageLite& message) const override {
    auto& request = static_cast<Message&>(message);
    if (route_.rule->has_body) PHIMAP_RETURN_IF_ERROR(ParseJson(body, request));
    if (!route_.rule->has_body && !body.empty()) {
      return Wrong(Code::kInvalidArgument, reason::kRequestMalformed, "body",
                   "expected no body for this method of HTTP; its fields come in the query");
    }
    return SetFields(route_, request);
  }

 private:
  const Route route_;
};

// A call behind a request over HTTP: the handler of the request's stream, and the stream of the
// call. Used on the loop's thread only.
class HttpCall final : public StreamHandler,
                       public Stream,
                       public std::enable_shared_from_this<HttpCall> {
 public:
  HttpCall(Stream& client, const google::protobuf::Descriptor& answer,
           const CallEnvironment& environment, CallerPointer caller)
      : client_(&client),
        loop_(client.loop()),
        answer_type_(answer),
        environment_(environment),
        caller_(std::move(caller)) {}

  // Gives the call its request's prefix, as if the body were a message of `bytes` bytes.
  void BeginBody(uint32_t bytes) {
    if (call_ == nullptr) return;
    char prefix[MessageReader::kPrefixBytes] = {0};
    for (int i = 0; i < 4; ++i) prefix[1 + i] = static_cast<char>(bytes >> (24 - 8 * i));
    own_bytes_ = sizeof(prefix);
    const std::shared_ptr<StreamHandler> call = call_;
    call->OnData(absl::string_view(prefix, sizeof(prefix)));
  }

  // The request's side.
  void OnData(absl::string_view bytes) override {
    if (const std::shared_ptr<StreamHandler> call = call_) call->OnData(bytes);
  }
  void OnRequestEnd() override {
    if (const std::shared_ptr<StreamHandler> call = call_) call->OnRequestEnd();
  }
  void OnSent() override {}
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
  void Send(std::shared_ptr<const OutputBytes> bytes) override { answer_ = std::move(bytes); }
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
  size_t unsent_bytes() const override { return client_ == nullptr ? 0 : client_->unsent_bytes(); }
  void Consume(size_t bytes) override {
    const size_t own = std::min(bytes, own_bytes_);
    own_bytes_ -= own;
    if (client_ != nullptr && bytes > own) client_->Consume(bytes - own);
  }
  void NoteAdmitted() override { client_->NoteAdmitted(); }
  void SetWindow(size_t bytes) override {
    if (client_ != nullptr) client_->SetWindow(bytes);
  }

 private:
  static absl::string_view Find(absl::Span<const Header> fields, absl::string_view name) {
    for (const Header& field : fields) {
      if (field.name == name) return field.value;
    }
    return {};
  }

  // Answers with the call's status, which gRPC's trailers state, or with its message.
  void End(absl::Span<const Header> trailers) {
    int code = 0;
    static_cast<void>(absl::SimpleAtoi(Find(trailers, "grpc-status"), &code));
    if (code != 0) {
      std::string details;
      static_cast<void>(absl::Base64Unescape(Find(trailers, "grpc-status-details-bin"), &details));
      std::string message;
      static_cast<void>(PercentDecode(Find(trailers, "grpc-message"), message));
      return SendError(*client_, HttpErrorOf(code, message, details),
                       Find(trailers, "phimap-request-id"));
    }
    revision_ = std::string(Find(trailers, kRevisionKey));
    const size_t bytes = answer_->bytes().size();
    std::optional<RequestMemory::Charge> charge =
        environment_.memory.TakeForAnswer(caller_, PrintedCost(static_cast<int64_t>(bytes)));
    if (!charge.has_value() && bytes > kPrintedHere) {
      return SendError(*client_,
                       HttpErrorOf(environment_.memory.Full(
                           caller_, "the answer", PrintedCost(static_cast<int64_t>(bytes)))));
    }
    if (!charge.has_value()) {
      charge = environment_.memory.TakeUnconditionally(caller_,
                                                       PrintedCost(static_cast<int64_t>(bytes)));
    }
    if (bytes <= kPrintedHere) return SendText(Print(*answer_), *std::move(charge));
    PrintElsewhere(*std::move(charge));
  }

  std::string Print(const OutputBytes& framed) const {
    const absl::string_view bytes = framed.bytes().substr(MessageReader::kPrefixBytes);
    const std::unique_ptr<Message> message(
        MessageFactory::generated_factory()->GetPrototype(&answer_type_)->New());
    message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
    return PrintJson(*message);
  }

  void PrintElsewhere(RequestMemory::Charge charge) {
    const auto shared = std::make_shared<RequestMemory::Charge>(std::move(charge));
    const std::shared_ptr<EventLoop> loop = loop_.shared_from_this();
    const absl::Status queued = environment_.parsing.Submit(
        [self = shared_from_this(), loop, shared, framed = std::move(answer_)] {
          std::string text;
          try {
            text = self->Print(*framed);
          } catch (const std::bad_alloc&) {
            loop->NoteMemoryFailures(1);
          }
          loop->Post([self, shared, text = std::move(text)]() mutable {
            if (self->client_ == nullptr) return;
            if (text.empty()) return self->client_->EndConnection();
            self->SendText(std::move(text), std::move(*shared));
          });
        },
        caller_);
    if (!queued.ok()) SendError(*client_, HttpErrorOf(queued));
  }

  void SendText(std::string text, RequestMemory::Charge charge) {
    const std::string length = absl::StrCat(text.size());
    Headers headers = {
        {":status", "200"}, {"content-type", "application/json"}, {"content-length", length}};
    AddCommon(headers);
    if (!revision_.empty()) headers.push_back({kRevisionKey, revision_});
    client_->SendHeaders(headers, /*end=*/false);
    charge.ShrinkTo(std::min(charge.bytes(), static_cast<int64_t>(text.capacity())));
    client_->Send(std::make_shared<ChargedText>(std::move(text), std::move(charge)));
    client_->SendTrailers({});
  }

  // Null after the request's stream has ended.
  Stream* client_;
  EventLoop& loop_;
  const google::protobuf::Descriptor& answer_type_;
  const CallEnvironment& environment_;
  const CallerPointer caller_;
  std::shared_ptr<StreamHandler> call_;
  // Bytes that the call was given beside the body's, and has not consumed.
  size_t own_bytes_ = 0;
  // The answer's message, with its prefix.
  std::shared_ptr<const OutputBytes> answer_;
  std::string revision_;
};

// Whether a page of another site sends the request, as far as its browser says so.
absl::Status CheckSite(const RequestHead& head) {
  const absl::string_view site = head.Find("sec-fetch-site");
  const absl::string_view origin = head.Find("origin");
  absl::string_view host = origin;
  if (!absl::ConsumePrefix(&host, "https://")) absl::ConsumePrefix(&host, "http://");
  const bool foreign_site = !site.empty() && site != "same-origin" && site != "none";
  const bool foreign_origin = !origin.empty() && host != head.Find(":authority");
  if (!foreign_site && !foreign_origin) return absl::OkStatus();
  return Wrong(Code::kPermissionDenied, reason::kSiteForeign,
               foreign_origin ? "origin" : "sec-fetch-site",
               absl::StrCat("a page of another site, ", Quoted(foreign_origin ? origin : site),
                            ", may not call this server"));
}

// Checks how the body is announced, and returns its length.
absl::StatusOr<uint32_t> LengthOf(const RequestHead& head, bool ended) {
  if (ended) return 0;
  uint32_t length = 0;
  if (absl::SimpleAtoi(head.Find("content-length"), &length)) return length;
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

bool IsJson(absl::string_view content_type) {
  const std::string type = absl::AsciiStrToLower(content_type.substr(0, content_type.find(';')));
  return absl::StripAsciiWhitespace(type) == "application/json";
}

}  // namespace

void HttpDoor::OnRequest(Stream& stream, const RequestHead& head, bool ended) {
  if (head.too_large) {
    return SendError(stream,
                     HttpErrorOf(Wrong(Code::kResourceExhausted, reason::kHeadersTooLarge, "",
                                       "the request's head is over the limit of 16384 bytes"),
                                 "431"));
  }
  if (!names_.MayCall(head)) {
    return SendError(
        stream,
        HttpErrorOf(Wrong(Code::kInvalidArgument, reason::kHttpHeaderInvalid, "host",
                          absl::StrCat("expected an IP address, a name without a dot or one of "
                                       "--http_hosts in the header Host, got ",
                                       Quoted(head.Find(":authority")))),
                    "421"));
  }
  if (const absl::Status site = CheckSite(head); !site.ok()) {
    return SendError(stream, HttpErrorOf(site));
  }
  absl::StatusOr<Route> route = Routes::OfApi().Find(head.Find(":method"), head.Find(":path"));
  if (!route.ok()) {
    return SendError(
        stream, HttpErrorOf(route.status(), absl::IsUnimplemented(route.status()) ? "405" : ""));
  }
  if (route->rule->has_body && !IsJson(head.Find("content-type"))) {
    return SendError(
        stream,
        HttpErrorOf(Wrong(Code::kInvalidArgument, reason::kHttpHeaderInvalid, "content-type",
                          absl::StrCat("expected the header content-type: application/json, got ",
                                       Quoted(head.Find("content-type")))),
                    "415"));
  }
  const absl::StatusOr<uint32_t> length = LengthOf(head, ended);
  if (!length.ok()) return SendError(stream, HttpErrorOf(length.status(), "411"));
  const google::protobuf::MethodDescriptor& method = *route->rule->method;
  const RequestId request_id;
  absl::StatusOr<Admission> admission = dispatcher_.Admit(
      stream, head, absl::StrCat("/", method.service()->full_name(), "/", method.name()),
      request_id);
  if (!admission.ok()) {
    return SendError(stream, HttpErrorOf(admission.status()), request_id.Text());
  }
  const absl::StatusOr<absl::Time> deadline = DeadlineOf(head, admission->deadline);
  if (!deadline.ok()) return SendError(stream, HttpErrorOf(deadline.status()));
  admission->deadline = *deadline;
  const auto call = std::make_shared<HttpCall>(stream, *method.output_type(),
                                               dispatcher_.environment(), admission->share.use());
  stream.SetHandler(call);
  dispatcher_.Begin(*call, *std::move(admission), std::make_shared<JsonRequest>(*std::move(route)));
  call->BeginBody(*length);
}

}  // namespace phimap
