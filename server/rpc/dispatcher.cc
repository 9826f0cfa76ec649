#include "server/rpc/dispatcher.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/thread/steady_time.h"
#include "server/admission/role.h"
#include "server/rpc/call.h"
#include "server/rpc/framed_message.h"
#include "server/rpc/metadata.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

constexpr int64_t kTooManyCallsRetryMs = 100;

const char* TypeOf(const google::protobuf::MethodDescriptor& method) {
  if (method.client_streaming() && method.server_streaming()) return "bidi_stream";
  if (method.client_streaming()) return "client_stream";
  if (method.server_streaming()) return "server_stream";
  return "unary";
}

bool IsGrpc(absl::string_view content_type) {
  constexpr absl::string_view kGrpc = "application/grpc";
  if (!absl::StartsWith(content_type, kGrpc)) return false;
  const absl::string_view rest = content_type.substr(kGrpc.size());
  return rest.empty() || rest[0] == ';' || absl::StartsWith(rest, "+proto");
}

absl::Status HeadersTooLarge() {
  return MakeError(Code::kResourceExhausted, reason::kHeadersTooLarge, "",
                   "the request's headers and metadata are over the limit of 16384 bytes",
                   {{"limit", "16384"}});
}

absl::Status NoSuchMethod(absl::string_view path, bool service_exists) {
  return MakeError(Code::kUnimplemented, reason::kMethodUnknown, "",
                   absl::StrCat("this server has no ", service_exists ? "method " : "service with ",
                                Quoted(path), "; server reflection lists its methods"));
}

absl::Status CompressionRefused(absl::string_view encoding) {
  return MakeError(
      Code::kUnimplemented, reason::kMessageCompressed, "grpc-encoding",
      absl::StrCat(
          "expected identity, got ", Quoted(encoding),
          "; compressed messages are refused, because a megabyte can inflate to a gigabyte"));
}

Caller CallerOf(const Stream& stream, const RequestHead& head) {
  const Peer& peer = stream.peer();
  return {.authorization = head.Find("authorization"),
          .authorizations = static_cast<size_t>(head.Count("authorization")),
          .certificate_verified = peer.certificate_verified,
          .certificate_digest = peer.certificate_digest,
          .certificate_names = peer.certificate_names,
          .unix_socket = peer.unix_socket,
          .user = peer.user};
}

absl::Status TooManyCalls(int limit) {
  return MakeError(Code::kResourceExhausted, reason::kCallLimitReached, "",
                   absl::StrCat("this caller has ", limit,
                                " concurrent calls, the maximum (--max_calls_per_caller)"),
                   {{"limit", absl::StrCat(limit)}}, kTooManyCallsRetryMs);
}

absl::Status TooManyOpenCalls(int limit) {
  return MakeError(
      Code::kResourceExhausted, reason::kCallLimitReached, "",
      absl::StrCat("this connection has ", limit, " concurrent calls without a token, the maximum"),
      {{"limit", absl::StrCat(limit)}}, kTooManyCallsRetryMs);
}

// Returns the deadline that the caller has set, or InfiniteFuture if there is none.
absl::StatusOr<absl::Time> DeadlineOf(const RequestHead& head) {
  const absl::string_view text = head.Find("grpc-timeout");
  if (text.empty()) return absl::InfiniteFuture();
  const std::optional<absl::Duration> timeout = ParseGrpcTimeout(text);
  if (timeout.has_value()) return SteadyNow() + *timeout;
  return MakeError(
      Code::kInvalidArgument, reason::kTimeoutInvalid, "grpc-timeout",
      absl::StrCat("expected 1 to 8 digits and one of H, M, S, m, u, n, got ", Quoted(text)));
}

absl::Status CheckEncoding(const RequestHead& head) {
  const absl::string_view encoding = head.Find("grpc-encoding");
  if (encoding.empty() || encoding == "identity") return absl::OkStatus();
  return CompressionRefused(encoding);
}

// Ends the process, because a method that nobody thought of must not be served.
[[noreturn]] void HasNoFacts(const std::string& method) {
  std::fprintf(stderr,
               "phimapd: nobody has said who may call %s: add to kMethodFacts in "
               "proto/methods/method_facts.h the line\n"
               "    {\"%s\", Role::kReader, Effect::kReads, Repeat::kYes},\n"
               "with the role, the effect and the repeats that are true of it\n",
               method.c_str(), method.c_str());
  std::abort();
}

[[noreturn]] void HasNoMethod(const std::string& service, const std::string& method) {
  std::fprintf(stderr,
               "phimapd: a call is opened as %s of %s, but the service has no such method: add it "
               "to the service's proto, or correct the name where the service is added\n",
               method.c_str(), service.c_str());
  std::abort();
}

// Whether the id of a request has the token of its authorization in it, or much of it: a mistake
// that must not be written down.
bool HoldsToken(absl::string_view request_id, absl::string_view authorization) {
  const absl::string_view token = authorization.substr(authorization.rfind(' ') + 1);
  return (request_id.size() >= kMinTokenBytes && absl::EndsWith(authorization, request_id)) ||
         (token.size() >= kMinTokenBytes && absl::StrContains(request_id, token));
}

}  // namespace

CallerIds CallerIdsOf(const RequestHead& head) {
  CallerIds ids;
  const absl::string_view request_id = head.Find(kRequestIdKey);
  if (head.Count(kRequestIdKey) == 1 && IsRequestId(request_id) &&
      !HoldsToken(request_id, head.Find("authorization"))) {
    ids.request_id = std::string(request_id);
  }
  if (head.Count(kTraceParentKey) == 1) {
    ids.trace_parent = TraceParent::Parse(head.Find(kTraceParentKey));
  }
  return ids;
}

Dispatcher::Dispatcher(const CallEnvironment& environment, Metrics& metrics)
    : environment_(environment), metrics_(metrics) {
  unknown_ = std::make_unique<Entry>(Entry{
      {metrics.AddMethod("unknown", "unknown", "unary"), Role::kReader, nullptr}, Access::kByRole});
}

void Dispatcher::Add(const google::protobuf::ServiceDescriptor& service, const Openers& openers,
                     Access access, int64_t max_request_bytes) {
  services_.push_back(service.full_name());
  for (int i = 0; i < service.method_count(); ++i) {
    const google::protobuf::MethodDescriptor& method = *service.method(i);
    MethodMetrics counted = metrics_.AddMethod(service.full_name(), method.name(), TypeOf(method));
    const std::optional<Role> role = RoleForMethod(counted.full_name);
    if (!role.has_value() && access != Access::kOpenToAll) HasNoFacts(counted.full_name);
    const auto opener = openers.find(method.name());
    const Revisions* const told = ChangesNames(counted.full_name) ? revisions_ : nullptr;
    std::string path = absl::StrCat("/", counted.full_name);
    methods_.emplace(std::move(path), std::make_unique<Entry>(
                                          Entry{{std::move(counted), role.value_or(Role::kReader),
                                                 opener == openers.end() ? nullptr : opener->second,
                                                 max_request_bytes, told},
                                                access}));
  }
  for (const auto& [name, open] : openers) {
    if (service.FindMethodByName(name) == nullptr) HasNoMethod(service.full_name(), name);
  }
}

void Dispatcher::AnswerHttp(Stream& stream, const RequestHead& head, int status,
                            absl::string_view message) {
  const ConnectionMetrics& connections = metrics_.connections();
  (status == 405 ? connections.http_405 : connections.http_415)->Increment();
  const RequestId request_id(CallerIdsOf(head));
  const std::string id = request_id.Text();
  if (http_logs_.Now()) {
    environment_.logger.Log(LogLevel::kInfo, "http_refused",
                            {{"peer", stream.peer().address},
                             {"status", status},
                             {"request_id", id},
                             {"trace_id", request_id.TraceId()},
                             {"error", message}});
  }
  const std::string status_text = absl::StrCat(status);
  const std::array<Header, 4> headers = {{{":status", status_text},
                                          {"content-type", "text/plain"},
                                          {"grpc-message", message},
                                          {kRequestIdKey, id}}};
  stream.SendHeaders(headers, /*end=*/false);
  stream.Send(std::make_shared<OutputText>(absl::StrCat(message, "\n")));
  const std::array<Header, 1> trailers = {{{"grpc-message", message}}};
  stream.SendTrailers(trailers);
}

const Dispatcher::Entry* Dispatcher::Find(Stream& stream, const RequestHead& head) {
  if (head.Find(":method") != "POST") {
    AnswerHttp(stream, head, 405, "expected POST: this port speaks gRPC");
    return nullptr;
  }
  if (!IsGrpc(head.Find("content-type"))) {
    AnswerHttp(stream, head, 415, "expected content-type application/grpc: this port speaks gRPC");
    return nullptr;
  }
  return &EntryOf(head.Find(":path"));
}

const Dispatcher::Entry& Dispatcher::EntryOf(absl::string_view path) const {
  const auto found = methods_.find(path);
  return found == methods_.end() ? *unknown_ : *found->second;
}

absl::StatusOr<Admitted> Dispatcher::Check(const Caller& caller, const RequestHead& head,
                                           absl::string_view path, const Entry& entry,
                                           absl::Time now) const {
  if (head.too_large) return HeadersTooLarge();
  if (!accepting_.load(std::memory_order_relaxed) && entry.access == Access::kByRole) {
    return ShuttingDown();
  }
  Admitted admitted{.role = Role::kReader};
  if (entry.access == Access::kByRole && &entry != unknown_.get()) {
    PHIMAP_ASSIGN_OR_RETURN(
        admitted,
        environment_.access.Admit(caller, entry.method.metrics.full_name, entry.method.role, now));
  }
  if (entry.method.open == nullptr) {
    const absl::string_view service = path.substr(0, path.rfind('/'));
    bool exists = false;
    for (const std::string& name : services_) exists |= absl::StrCat("/", name) == service;
    return NoSuchMethod(path, exists);
  }
  PHIMAP_RETURN_IF_ERROR(CheckEncoding(head));
  return admitted;
}

void Dispatcher::CountRefusal(const Stream& stream, const RequestHead& head, const Entry& entry,
                              const absl::Status& status, const RequestId& request_id) const {
  PrincipalPointer caller;
  if (entry.access == Access::kByRole && &entry != unknown_.get()) {
    caller = environment_.access.WhoIs(CallerOf(stream, head));
  }
  entry.method.metrics.started->Increment();
  RecordEnd(environment_, {entry.method, status, absl::ZeroDuration(), stream.peer().address,
                           caller.get(), request_id});
}

absl::StatusOr<CallerShares::Share> Dispatcher::ShareOf(const Peer& peer, const Caller& caller,
                                                        const Entry& entry,
                                                        const Admitted& admitted) {
  if (environment_.access.open()) return environment_.callers.TakeOfHost(peer.network);
  const bool by_role = entry.access == Access::kByRole;
  std::optional<CallerShares::Share> share =
      by_role ? environment_.callers.Take(environment_.access.ShareKeyOf(caller, admitted),
                                          admitted.administers())
              : open_calls_.Take(peer.unix_socket ? "" : peer.address);
  if (share.has_value()) return *std::move(share);
  return by_role ? TooManyCalls(environment_.callers.max_calls()) : TooManyOpenCalls(kMaxOpenCalls);
}

absl::StatusOr<Admission> Dispatcher::AdmitTo(Stream& stream, const RequestHead& head,
                                              absl::string_view path, const Entry& entry) {
  const Caller caller = environment_.access.open() ? Caller() : CallerOf(stream, head);
  PHIMAP_ASSIGN_OR_RETURN(Admitted admitted, Check(caller, head, path, entry, stream.loop().now()));
  PHIMAP_ASSIGN_OR_RETURN(const absl::Time deadline, DeadlineOf(head));
  const absl::string_view wanted = revisions_ == nullptr ? "" : head.Find(kMinRevisionKey);
  // A call that requires a revision which is known need not wait for it.
  bool reached = true;
  if (!wanted.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(reached, revisions_->Knows(wanted));
  }
  if (entry.access == Access::kByRole || environment_.access.open()) stream.NoteAdmitted();
  PHIMAP_ASSIGN_OR_RETURN(CallerShares::Share share,
                          ShareOf(stream.peer(), caller, entry, admitted));
  return Admission{&entry.method,
                   deadline,
                   std::move(share),
                   std::move(admitted.principal),
                   std::string(reached ? "" : wanted),
                   wanted.empty() ? nullptr : revisions_,
                   CallerIdsOf(head)};
}

absl::StatusOr<Admission> Dispatcher::Admit(Stream& stream, const RequestHead& head,
                                            absl::string_view path, const RequestId& request_id) {
  const Entry& entry = EntryOf(path);
  absl::StatusOr<Admission> admission = AdmitTo(stream, head, path, entry);
  if (!admission.ok()) CountRefusal(stream, head, entry, admission.status(), request_id);
  return admission;
}

void Dispatcher::Begin(Stream& stream, Admission admission,
                       std::shared_ptr<RequestParser> parser) const {
  const std::shared_ptr<Call> call = admission.method->open(
      {stream, *admission.method, environment_, admission.deadline, std::move(admission.share),
       std::move(admission.principal), admission.min_revision, admission.revisions,
       std::move(parser), std::move(admission.ids)});
  stream.SetHandler(call);
  call->Begin();
}

void Dispatcher::OnRequest(Stream& stream, const RequestHead& head, bool) {
  const Entry* const entry = Find(stream, head);
  if (entry == nullptr) return;
  absl::StatusOr<Admission> admission = AdmitTo(stream, head, head.Find(":path"), *entry);
  if (admission.ok()) return Begin(stream, *std::move(admission));
  const RequestId request_id(CallerIdsOf(head));
  CountRefusal(stream, head, *entry, admission.status(), request_id);
  SendStatus(stream, admission.status(), /*headers_sent=*/false, request_id);
}

}  // namespace phimap
