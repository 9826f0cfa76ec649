#include "server/http/inference_format.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "core/status/error.h"
#include "google/protobuf/message.h"
#include "inference/inference_service.pb.h"
#include "server/http/infer_body.h"
#include "server/http/json.h"
#include "server/http/json_values.h"
#include "server/http/plain_json.h"
#include "server/http/routes.h"

namespace phimap {
namespace {

using google::protobuf::Message;

constexpr char kJsonLength[] = "inference-header-content-length";

// What the path names.
struct Model {
  std::string name;
  std::string version;
};

// How a message of the protocol is written, where it is not as it is in gRPC.
using Printer = HttpAnswer (*)(const Model& model, Message& answer);

HttpAnswer Json(std::string text) {
  text.push_back('\n');
  return {{{"content-type", "application/json"}}, std::move(text), {}};
}

HttpAnswer PrintAll(const Model&, Message& answer) {
  std::string text;
  AppendPlainJson(answer, text);
  return Json(std::move(text));
}

HttpAnswer WithStatus(HttpAnswer answer, bool yes) {
  if (!yes) answer.status = "400";
  return answer;
}

HttpAnswer PrintLive(const Model& model, Message& answer) {
  return WithStatus(PrintAll(model, answer),
                    static_cast<const inference::ServerLiveResponse&>(answer).live());
}

HttpAnswer PrintReady(const Model& model, Message& answer) {
  return WithStatus(PrintAll(model, answer),
                    static_cast<const inference::ServerReadyResponse&>(answer).ready());
}

HttpAnswer PrintModelReady(const Model& model, Message& answer) {
  const bool ready = static_cast<const inference::ModelReadyResponse&>(answer).ready();
  std::string text = "{\"name\":";
  AppendString(model.name, text);
  absl::StrAppend(&text, ",\"ready\":", ready ? "true" : "false", "}");
  return WithStatus(Json(std::move(text)), ready);
}

// The extension is one of HTTP: in gRPC, tensors are bytes anyway.
HttpAnswer PrintServer(const Model& model, Message& answer) {
  static_cast<inference::ServerMetadataResponse&>(answer).add_extensions("binary_tensor_data");
  return PrintAll(model, answer);
}

HttpAnswer PrintConfig(const Model& model, Message& answer) {
  return PrintAll(model, *static_cast<inference::ModelConfigResponse&>(answer).mutable_config());
}

HttpAnswer PrintIndex(const Model&, Message& answer) {
  std::string text = "[";
  for (const auto& model :
       static_cast<const inference::RepositoryIndexResponse&>(answer).models()) {
    if (text.size() > 1) text.push_back(',');
    AppendPlainJson(model, text);
  }
  text.push_back(']');
  return Json(std::move(text));
}

// A call whose request is what the path names, or a JSON object.
class DescriptionFormat final : public HttpFormat {
 public:
  DescriptionFormat(Model model, bool has_body, Printer print)
      : model_(std::move(model)), has_body_(has_body), print_(print) {}

  int64_t Cost(absl::string_view body) const override {
    return JsonCost(static_cast<int64_t>(body.size()));
  }
  absl::Status Parse(absl::string_view body, google::protobuf::MessageLite& message) override {
    auto& request = static_cast<Message&>(message);
    if (has_body_) return ParseJson(body, request);
    if (!body.empty()) return MalformedHttp("body", "expected no body for this method of HTTP");
    SetText(request, "name", model_.name);
    SetText(request, "version", model_.version);
    return absl::OkStatus();
  }
  int64_t AnswerCost(int64_t bytes) const override { return PlainJsonCost(bytes); }
  HttpAnswer Write(Message& answer) override { return print_(model_, answer); }
  HttpError Error(HttpError error) const override { return InferenceError(std::move(error)); }

 private:
  static void SetText(Message& message, const char* name, const std::string& value) {
    const auto* const field = message.GetDescriptor()->FindFieldByName(name);
    if (field != nullptr) message.GetReflection()->SetString(&message, field, value);
  }

  const Model model_;
  const bool has_body_;
  const Printer print_;
};

class InferFormat final : public HttpFormat {
 public:
  // The first `json_bytes` bytes of the body are JSON; all are if it is unset.
  InferFormat(Model model, std::optional<uint32_t> json_bytes)
      : model_(std::move(model)), json_bytes_(json_bytes) {}

  int64_t Cost(absl::string_view body) const override {
    return InferBodyCost(body, JsonBytes(body));
  }
  absl::Status Parse(absl::string_view body, google::protobuf::MessageLite& message) override {
    auto& request = static_cast<inference::ModelInferRequest&>(message);
    request.set_model_name(model_.name);
    request.set_model_version(model_.version);
    return ReadInferBody(body, JsonBytes(body), request, binary_);
  }
  int64_t AnswerCost(int64_t bytes) const override { return InferAnswerCost(bytes, binary_); }
  HttpAnswer Write(Message& answer) override {
    return WriteInferBody(static_cast<inference::ModelInferResponse&>(answer), binary_);
  }
  HttpError Error(HttpError error) const override { return InferenceError(std::move(error)); }

 private:
  size_t JsonBytes(absl::string_view body) const { return json_bytes_.value_or(body.size()); }

  const Model model_;
  const std::optional<uint32_t> json_bytes_;
  // Set by Parse. A format serves one request, whose functions are called one after the other.
  BinaryOutputs binary_;
};

struct Place {
  const char* verb;
  // What follows /v2, or the model.
  const char* path;
  const char* method;
  Printer print = PrintAll;
};
constexpr Place kOfServer[] = {{"GET", "", "ServerMetadata", PrintServer},
                               {"GET", "/health/live", "ServerLive", PrintLive},
                               {"GET", "/health/ready", "ServerReady", PrintReady},
                               {"GET", "/models/stats", "ModelStatistics"},
                               {"POST", "/repository/index", "RepositoryIndex", PrintIndex}};
constexpr Place kOfModel[] = {{"GET", "", "ModelMetadata"},
                              {"GET", "/ready", "ModelReady", PrintModelReady},
                              {"GET", "/config", "ModelConfig", PrintConfig},
                              {"GET", "/stats", "ModelStatistics"},
                              {"POST", "/infer", "ModelInfer"}};

const Place* FindPlace(absl::Span<const Place> places, absl::string_view path) {
  for (const Place& place : places) {
    if (path == place.path) return &place;
  }
  return nullptr;
}

// Finds the place of a path without its /v2, and the model that it names.
absl::Status FindPlaceAndModel(absl::string_view path, const Place*& place, Model& model) {
  place = FindPlace(kOfServer, path);
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  if (place != nullptr || parts.size() < 3 || parts[1] != "models") return absl::OkStatus();
  const bool has_version = parts.size() > 4 && parts[3] == "versions";
  size_t named = 0;  // bytes of the path up to the model's end
  for (size_t i = 1; i < (has_version ? 5 : 3); ++i) named += 1 + parts[i].size();
  place = FindPlace(kOfModel, path.substr(named));
  if (parts[2].empty() || (has_version && parts[4].empty())) place = nullptr;
  if (PercentDecode(parts[2], model.name) &&
      (!has_version || PercentDecode(parts[4], model.version))) {
    return absl::OkStatus();
  }
  return MalformedHttp("path", absl::StrCat("expected %XX in the path, got ", Quoted(path)));
}

HttpRefusal WrongHeader(const char* name, absl::string_view message,
                        absl::string_view http_status) {
  return {MakeError(absl::StatusCode::kInvalidArgument, reason::kHttpHeaderInvalid, name, message),
          http_status};
}

// Checks how a body is announced. A page of another site cannot send either header without asking
// first. `json_bytes` is unchanged if all is JSON.
std::optional<HttpRefusal> CheckBody(const RequestHead& head, bool may_be_binary,
                                     std::optional<uint32_t>& json_bytes) {
  const absl::string_view coding = head.Find("content-encoding");
  if (!coding.empty() && coding != "identity") {
    return WrongHeader("content-encoding",
                       absl::StrCat("expected a body that is not compressed, got ", Quoted(coding)),
                       "415");
  }
  if (may_be_binary && head.Count(kJsonLength) > 0) {
    uint32_t length = 0;
    if (head.Count(kJsonLength) == 1 && absl::SimpleAtoi(head.Find(kJsonLength), &length)) {
      json_bytes = length;
      return std::nullopt;
    }
    return WrongHeader(kJsonLength,
                       absl::StrCat("expected the length of the JSON in bytes, once, in the header "
                                    "Inference-Header-Content-Length, got ",
                                    Quoted(head.Find(kJsonLength))),
                       {});
  }
  if (IsJsonType(head.Find("content-type"))) return std::nullopt;
  return WrongHeader(
      "content-type",
      absl::StrCat("expected the header content-type: application/json",
                   may_be_binary ? ", or Inference-Header-Content-Length with the length of the "
                                   "JSON before the bytes of tensors"
                                 : "",
                   "; got content-type ", Quoted(head.Find("content-type"))),
      "415");
}

}  // namespace

bool IsInferencePath(absl::string_view path) {
  return path == "/v2" || absl::StartsWith(path, "/v2/") || absl::StartsWith(path, "/v2?");
}

HttpError InferenceError(HttpError error) {
  constexpr absl::string_view kMessage = ",\"message\":";
  const size_t place = error.body.find(kMessage.data(), 0, kMessage.size());
  if (place != std::string::npos) error.body.replace(place, kMessage.size(), ",\"error\":");
  return error;
}

std::optional<HttpRefusal> FindInferenceTarget(const RequestHead& head, HttpTarget& target) {
  // HEAD is answered as GET, without the body.
  const absl::string_view verb = head.Find(":method") == "HEAD" ? "GET" : head.Find(":method");
  absl::string_view path = head.Find(":path");
  if (absl::StrContains(path, '?')) {
    return HttpRefusal{MalformedHttp("query", "expected no query: the protocol has none")};
  }
  path.remove_prefix(3);  // "/v2"
  if (path == "/") path = "";
  const Place* place = nullptr;
  Model model;
  absl::Status found = FindPlaceAndModel(path, place, model);
  if (!found.ok()) return HttpRefusal{std::move(found)};
  if (place == nullptr) {
    return HttpRefusal{MakeError(absl::StatusCode::kNotFound, reason::kMethodUnknown, "",
                                 absl::StrCat("nothing is served at ", Quoted(head.Find(":path")),
                                              "; the paths are as /v2/models/letters/infer and "
                                              "/v2/models/letters/versions/prod/ready"))};
  }
  if (verb != place->verb) {
    std::vector<std::string> allowed = {place->verb};
    if (allowed[0] == "GET") allowed.emplace_back("HEAD");
    return HttpRefusal{WrongVerb(head.Find(":path"), allowed, verb), "405"};
  }
  target.method = inference::ModelInferRequest::descriptor()
                      ->file()
                      ->FindServiceByName("GRPCInferenceService")
                      ->FindMethodByName(place->method);
  const bool infers = target.method->input_type() == inference::ModelInferRequest::descriptor();
  const bool has_body = verb == absl::string_view("POST");
  std::optional<uint32_t> json_bytes;
  if (has_body) {
    std::optional<HttpRefusal> wrong = CheckBody(head, infers, json_bytes);
    if (wrong.has_value()) return wrong;
  }
  if (infers) {
    target.format = std::make_shared<InferFormat>(std::move(model), json_bytes);
  } else {
    target.format = std::make_shared<DescriptionFormat>(std::move(model), has_body, place->print);
  }
  return std::nullopt;
}

}  // namespace phimap
