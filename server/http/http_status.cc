#include "server/http/http_status.h"

#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/error.h"
#include "google/protobuf/util/json_util.h"
#include "phimap/rpc/error_details.pb.h"
#include "server/observe/json_text.h"
#include "server/rpc/status_trailers.h"

namespace phimap {
namespace {

// The status of HTTP for each of gRPC, as google.rpc.Code states it.
struct StatusPair {
  absl::StatusCode code;
  const char* http;
};
constexpr StatusPair kStatuses[] = {{absl::StatusCode::kOk, "200"},
                                    {absl::StatusCode::kInvalidArgument, "400"},
                                    {absl::StatusCode::kFailedPrecondition, "400"},
                                    {absl::StatusCode::kOutOfRange, "400"},
                                    {absl::StatusCode::kUnauthenticated, "401"},
                                    {absl::StatusCode::kPermissionDenied, "403"},
                                    {absl::StatusCode::kNotFound, "404"},
                                    {absl::StatusCode::kAborted, "409"},
                                    {absl::StatusCode::kAlreadyExists, "409"},
                                    {absl::StatusCode::kResourceExhausted, "429"},
                                    {absl::StatusCode::kCancelled, "499"},
                                    {absl::StatusCode::kUnimplemented, "501"},
                                    {absl::StatusCode::kUnavailable, "503"},
                                    {absl::StatusCode::kDeadlineExceeded, "504"}};

const char* HttpStatusOf(int code) {
  for (const auto& [grpc, http] : kStatuses) {
    if (static_cast<int>(grpc) == code) return http;
  }
  return "500";
}

// Appends a detail with its type, `{"@type":"type.googleapis.com/google.rpc.ErrorInfo",…}`. The
// types are declared in a package of phimap's own, with the wire format of google.rpc's.
template <typename Detail>
void AppendDetail(const google::protobuf::Any& any, std::string& text) {
  Detail detail;
  std::string object;
  if (!detail.ParseFromString(any.value())) return;
  if (!google::protobuf::util::MessageToJsonString(detail, &object).ok()) return;
  absl::StrAppend(&text, text.empty() ? "" : ",", "{\"@type\":");
  AppendJsonText(any.type_url(), text);
  absl::StrAppend(&text, object.size() > 2 ? "," : "", absl::string_view(object).substr(1));
}

}  // namespace

absl::Status MalformedHttp(absl::string_view field, absl::string_view message) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kRequestMalformed,
                   std::string(field), message);
}

absl::Status WrongVerb(absl::string_view path, absl::Span<const std::string> allowed,
                       absl::string_view verb) {
  return MakeError(absl::StatusCode::kUnimplemented, reason::kMethodUnknown, "",
                   absl::StrCat("expected ", absl::StrJoin(allowed, " or "), " for ", Quoted(path),
                                ", got ", verb),
                   {{"allow", absl::StrJoin(allowed, ", ")}});
}

HttpError HttpErrorOf(int code, absl::string_view message, absl::string_view details) {
  HttpError error{.status = HttpStatusOf(code), .body = "", .retry_after = "", .allow = ""};
  std::string typed;
  phimap::rpc::Status status;
  if (status.ParseFromArray(details.data(), static_cast<int>(details.size()))) {
    for (const google::protobuf::Any& any : status.details()) {
      if (absl::EndsWith(any.type_url(), ".ErrorInfo")) {
        // No later time makes a message smaller, which is what 429 says.
        phimap::rpc::ErrorInfo info;
        if (info.ParseFromString(any.value()) && info.reason() == reason::kMessageTooLarge) {
          error.status = "413";
        }
        AppendDetail<phimap::rpc::ErrorInfo>(any, typed);
      } else if (absl::EndsWith(any.type_url(), ".BadRequest")) {
        AppendDetail<phimap::rpc::BadRequest>(any, typed);
      } else if (absl::EndsWith(any.type_url(), ".RetryInfo")) {
        AppendDetail<phimap::rpc::RetryInfo>(any, typed);
        phimap::rpc::RetryInfo retry;
        if (retry.ParseFromString(any.value())) {
          const bool part = retry.retry_delay().nanos() > 0;
          error.retry_after = absl::StrCat(retry.retry_delay().seconds() + (part ? 1 : 0));
        }
      }
    }
  }
  error.body = absl::StrCat("{\"code\":", code, ",\"message\":");
  AppendJsonText(message, error.body);
  absl::StrAppend(&error.body, ",\"details\":[", typed, "]}\n");
  return error;
}

HttpError HttpErrorOf(const absl::Status& status, absl::string_view http_status) {
  const StatusDetails shown = DetailsForClient(status);
  HttpError error = HttpErrorOf(static_cast<int>(status.code()), shown.message, shown.details);
  if (!http_status.empty()) error.status = std::string(http_status);
  if (const std::optional<ErrorDetail> detail = DetailOf(status);
      http_status == "405" && detail.has_value()) {
    const auto allow = detail->metadata.find("allow");
    if (allow != detail->metadata.end()) error.allow = allow->second;
  }
  return error;
}

}  // namespace phimap
