#include "server/trace/collector_client.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "opentelemetry/trace.pb.h"
#include "server/trace/libcurl.h"

namespace phimap {
namespace {

constexpr char kTracesPath[] = "/v1/traces";
// Bytes of an answer that are kept. The answers of OTLP are a few bytes, or a sentence.
constexpr size_t kMaxAnswerBytes = 64 << 10;

bool IsHostAndPort(absl::string_view authority) {
  const size_t colon = authority.rfind(':');
  const absl::string_view host = authority.substr(0, colon);
  uint32_t port = 0;
  const bool has_port = colon != absl::string_view::npos &&
                        absl::SimpleAtoi(authority.substr(colon + 1), &port) && port >= 1 &&
                        port <= 65535;
  const absl::string_view name = absl::StartsWith(host, "[") && absl::EndsWith(host, "]")
                                     ? host.substr(1, host.size() - 2)
                                     : host;
  return has_port && !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_' ||
                  (c == ':' && name.size() < host.size());
         });
}

bool IsPath(absl::string_view path) {
  return path.empty() || (path[0] == '/' && std::all_of(path.begin(), path.end(), [](char c) {
                            return absl::ascii_isgraph(c) && c != '?' && c != '#';
                          }));
}

// Returns what an error's body says: a message in protobuf, by OTLP, or a proxy's text.
std::string ErrorIn(const std::string& body) {
  opentelemetry::Refusal refusal;
  const bool says = refusal.ParseFromString(body) && !refusal.message().empty();
  return Excerpt(says ? refusal.message() : body);
}

// Whether OTLP allows to send a request again that was answered with this status.
bool MayRetry(int64_t status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

}  // namespace

absl::StatusOr<std::string> CollectorUrl(absl::string_view flag, absl::string_view text) {
  absl::string_view rest = text;
  const bool http = absl::ConsumePrefix(&rest, "http://") || absl::ConsumePrefix(&rest, "https://");
  const size_t slash = std::min(rest.find('/'), rest.size());
  const absl::string_view path = rest.substr(slash);
  if (http && IsHostAndPort(rest.substr(0, slash)) && IsPath(path)) {
    return absl::StrCat(text.substr(0, text.size() - path.size()),
                        path.empty() || path == "/" ? kTracesPath : path);
  }
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kFlagInvalid, flag,
                   absl::StrCat("expected http://HOST:PORT or https://HOST:PORT of an "
                                "OpenTelemetry collector, or such a URL with a path; got ",
                                absl::StrContains(text, '@')
                                    ? "one with @, which is not repeated here, since it may hold a "
                                      "password"
                                    : Quoted(text)));
}

// What libcurl keeps between requests.
struct CollectorClient::Handles {
  Handles() = default;
  ~Handles();
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  static size_t Receive(char* bytes, size_t size, size_t count, void* handles);
  bool Allocate(const std::string& agent);
  bool Configure(const std::string& url);
  // What the answer says, after a transfer that ended with `code`.
  CollectorAnswer AnswerOf(CURLcode code) const;

  const Libcurl& curl = libcurl();
  CURLM* multi = nullptr;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  std::array<char, CURL_ERROR_SIZE> error{};
  // The body of the answer.
  std::string body;
};

CollectorClient::Handles::~Handles() {
  if (easy != nullptr) curl.curl_easy_cleanup(easy);
  if (multi != nullptr) curl.curl_multi_cleanup(multi);
  curl.curl_slist_free_all(headers);
}

size_t CollectorClient::Handles::Receive(char* bytes, size_t size, size_t count, void* handles) {
  std::string& body = static_cast<Handles*>(handles)->body;
  body.append(bytes, std::min(size * count, kMaxAnswerBytes - body.size()));
  return size * count;
}

bool CollectorClient::Handles::Allocate(const std::string& agent) {
  multi = curl.curl_multi_init();
  easy = curl.curl_easy_init();
  if (multi == nullptr || easy == nullptr) return false;
  // An empty "Expect:" keeps libcurl from asking before it sends a large request.
  for (const std::string& header : {std::string("Content-Type: application/x-protobuf"),
                                    std::string("Expect:"), absl::StrCat("User-Agent: ", agent)}) {
    curl_slist* const longer = curl.curl_slist_append(headers, header.c_str());
    if (longer == nullptr) return false;
    headers = longer;
  }
  return true;
}

bool CollectorClient::Handles::Configure(const std::string& url) {
  const auto set = [this](CURLoption option, auto value) {
    return curl.curl_easy_setopt(easy, option, value) == CURLE_OK;
  };
  return set(CURLOPT_URL, url.c_str()) && set(CURLOPT_HTTPHEADER, headers) &&
         set(CURLOPT_PROTOCOLS_STR, "http,https") && set(CURLOPT_PROXY, "") &&
         set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1}) && set(CURLOPT_NOSIGNAL, 1L) &&
         // Without this, ending a transfer would wait for the thread that resolves its host.
         set(CURLOPT_QUICK_EXIT, 1L) && set(CURLOPT_ERRORBUFFER, error.data()) &&
         set(CURLOPT_WRITEFUNCTION, &Handles::Receive) && set(CURLOPT_WRITEDATA, this);
}

CollectorAnswer CollectorClient::Handles::AnswerOf(CURLcode code) const {
  CollectorAnswer answer;
  if (code != CURLE_OK) {
    answer.error = error[0] == '\0' ? curl.curl_easy_strerror(code) : error.data();
    return answer;
  }
  long status = 0;
  curl_off_t retry_after = 0;
  curl.curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  curl.curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after);
  if (status != 200) {
    answer.kind =
        MayRetry(status) ? CollectorAnswer::Kind::kTryLater : CollectorAnswer::Kind::kRefused;
    answer.retry_after = std::chrono::seconds(std::max<curl_off_t>(0, retry_after));
    answer.error = absl::StrCat("HTTP status ", status, ": ", ErrorIn(body));
    return answer;
  }
  answer.kind = CollectorAnswer::Kind::kTaken;
  opentelemetry::ExportTraceServiceResponse response;
  // A body that does not parse says nothing: the status alone counts.
  if (response.ParseFromString(body)) {
    answer.rejected = std::max<int64_t>(0, response.partial_success().rejected_spans());
    answer.error = Excerpt(response.partial_success().error_message());
  }
  return answer;
}

CollectorClient::CollectorClient(std::unique_ptr<Handles> handles) : handles_(std::move(handles)) {}

CollectorClient::~CollectorClient() = default;

absl::StatusOr<std::unique_ptr<CollectorClient>> CollectorClient::Make(const std::string& url,
                                                                       const std::string& agent) {
  PHIMAP_RETURN_IF_ERROR(LoadLibcurl());
  auto handles = std::make_unique<Handles>();
  if (!handles->Allocate(agent) || !handles->Configure(url)) {
    return MakeError(absl::StatusCode::kFailedPrecondition, reason::kFlagInvalid,
                     "--trace_endpoint",
                     absl::StrCat("libcurl does not take ", Quoted(url),
                                  "; it must be libcurl 7.87 or later, with https"));
  }
  return absl::WrapUnique(new CollectorClient(std::move(handles)));
}

CollectorAnswer CollectorClient::Post(const std::string& request,
                                      const std::function<Clock::time_point()>& give_up_at) {
  Handles& handles = *handles_;
  const Libcurl& curl = handles.curl;
  handles.body.clear();
  handles.error[0] = '\0';
  curl.curl_easy_setopt(handles.easy, CURLOPT_POSTFIELDSIZE_LARGE,
                        static_cast<curl_off_t>(request.size()));
  curl.curl_easy_setopt(handles.easy, CURLOPT_POSTFIELDS, request.data());
  curl.curl_multi_add_handle(handles.multi, handles.easy);
  int running = 0;
  std::optional<CURLcode> ended;
  while (!ended.has_value()) {
    if (curl.curl_multi_perform(handles.multi, &running) != CURLM_OK) ended = CURLE_OUT_OF_MEMORY;
    int left = 0;
    while (const CURLMsg* message = curl.curl_multi_info_read(handles.multi, &left)) {
      if (message->msg == CURLMSG_DONE) ended = message->data.result;
    }
    if (ended.has_value()) break;
    const Clock::time_point until = give_up_at();
    const auto time = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (time.count() <= 0) break;
    const int64_t at_most = 60'000;
    curl.curl_multi_poll(handles.multi, nullptr, 0,
                         static_cast<int>(std::min<int64_t>(time.count(), at_most)), nullptr);
  }
  // Also ends the transfer, if it is under way.
  curl.curl_multi_remove_handle(handles.multi, handles.easy);
  if (ended.has_value()) return handles.AnswerOf(*ended);
  return {.error = "no answer in time"};
}

void CollectorClient::Wake() { handles_->curl.curl_multi_wakeup(handles_->multi); }

}  // namespace phimap
