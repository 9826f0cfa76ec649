#include "server/http/openapi.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/digest/sha256.h"
#include "core/status/check.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/descriptor_database.h"
#include "google/protobuf/io/gzip_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "phimap/rpc/error_details.pb.h"
#include "phimap/v1/error_reason.pb.h"
#include "server/http/routes.h"
#include "server/http/schemas.h"

namespace phimap {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptorProto;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

constexpr absl::string_view kCommented(
#include "server/http/commented.inc"
);

// What the document says of the API as a whole.
constexpr char kAbout[] =
    "Feature maps of kernels: build a mapping once, then transform rows by it, and predict by its "
    "head.\n\n"
    "Messages are protobuf's JSON with the names of the protos. An answer leaves out a field that "
    "has its default value: 0, false, an empty text or an empty array. Rows may be given as `rows` "
    "in place of `examples`, and the rows "
    "of an answer are arrays. A request may also have the names in lower camel case, and numbers "
    "as "
    "texts.\n\n"
    "A body needs the header content-type and, but for a stream of rows or an artifact, "
    "content-length.";

// What a parameter in a path is, where the comment of its field does not say it.
struct PathParameter {
  absl::string_view name;
  const char* description;
};
constexpr PathParameter kPathParameters[] = {
    {"name", "The name of the mapping, such as letters."},
    {"spec.name", "The name of the mapping that is built, or would be, such as letters."},
    {"spec.reference",
     "A version, as letters@3 or letters@prod. For a training with build.spec, the "
     "name of the mapping that is built."},
    {"version",
     "A number, an alias, or sha256: and digits of the digest. To delete a version, no alias."},
    {"alias", "The name of the alias."},
    {"build_id", "The UUID of the build."}};

// The forms of the bodies of an operation's requests and answers. A row without an operation is for
// each call of the rules, and a row without a schema has that of the call's message.
struct BodyForm {
  absl::string_view operation;
  bool of_answer;
  const char* content_type;
  const char* schema;
};
constexpr char kBinary[] = R"({"type":"string","format":"binary"})";
constexpr BodyForm kBodyForms[] = {
    {"", false, "application/json", ""},
    {"", true, "application/json", ""},
    {"Transform", false, "text/csv", R"({"type":"string"})"},
    {"Transform", false, "application/x-npy", kBinary},
    {"Transform", true, "text/csv", R"({"type":"string"})"},
    {"Transform", true, "application/x-npy", kBinary},
    {"Predict", false, "text/csv", R"({"type":"string"})"},
    {"Predict", false, "application/x-npy", kBinary},
    {"Predict", true, "text/csv", R"({"type":"string"})"},
    {"Predict", true, "application/x-npy", kBinary},
    {"Build", false, "text/csv", R"({"type":"string"})"},
    {"Build", false, "application/x-npy", kBinary},
    {"Build", true, "application/x-ndjson", R"({"type":"string"})"},
    {"Train", false, "text/csv", R"({"type":"string"})"},
    {"Train", false, "application/x-npy", kBinary},
    {"Train", true, "application/x-ndjson", R"({"type":"string"})"},
    {"Evaluate", false, "text/csv", R"({"type":"string"})"},
    {"Evaluate", false, "application/x-npy", kBinary},
    {"Evaluate", true, "application/x-ndjson", R"({"type":"string"})"},
    {"Import", false, "application/octet-stream", kBinary},
    {"Export", true, "application/octet-stream", kBinary},
    {"GetOpenApi", true, "application/json", R"({"type":"object","additionalProperties":true})"}};

// What the query says of the columns of a body of CSV.
struct ColumnRole {
  const char* name;
  // Whether only trainings have the role.
  bool trains;
  const char* description;
};
constexpr ColumnRole kColumnRoles[] = {
    {"columns", false,
     "The columns of the inputs, in their order, divided by commas. Absent: all that "
     "have no other role."},
    {"exclude", false, "Columns that are not inputs, divided by commas."},
    {"label", false, "The column of labels, which is no input."},
    {"weights", true, "The column of weights."},
    {"groups", true, "The column of groups."},
    {"parts", true,
     "The column of parts: train, validate, calibrate-link, calibrate-sets, test or "
     "nothing."},
    {"delimiter", false, "The character between cells, or tab. Absent: a comma."}};

// What is served beside the calls of the rules. Parameters in the path are {written so}.
struct Extra {
  const char* path;
  const char* verb;
  const char* id;
  const char* tag;
  const char* summary;
  const char* description;
  // Whether a caller needs a token, if the server has tokens.
  bool needs_token;
};
constexpr Extra kExtras[] = {
    {kOpenApiPath, "get", "GetOpenApi", "Description", "Returns this document",
     "Needs no token. The header etag differs for each document; a request that sends it as "
     "if-none-match is answered by 304.",
     false}};
// The tags of what is no service.
constexpr std::pair<const char*, const char*> kExtraTags[] = {
    {"Description", "What the server is."}};

// The pool of the API's descriptors with their comments. Files that are not embedded, such as those
// of well-known types, are the program's, without comments.
class CommentedPool {
 public:
  CommentedPool() {
    google::protobuf::io::ArrayInputStream bytes(kCommented.data(),
                                                 static_cast<int>(kCommented.size()));
    google::protobuf::io::GzipInputStream stream(&bytes);
    google::protobuf::FileDescriptorSet set;
    PHIMAP_CHECK(set.ParseFromZeroCopyStream(&stream));
    for (const FileDescriptorProto& file : set.file()) PHIMAP_CHECK(commented_.Add(file));
  }

  const DescriptorPool& pool() const { return pool_; }

 private:
  google::protobuf::SimpleDescriptorDatabase commented_;
  google::protobuf::DescriptorPoolDatabase program_{*DescriptorPool::generated_pool()};
  google::protobuf::MergedDescriptorDatabase both_{&commented_, &program_};
  const DescriptorPool pool_{&both_};
};

// The first sentence of a comment, without its full stop.
std::string Summary(absl::string_view comment) {
  const size_t end = std::min(comment.find(". "), comment.find("\n\n"));
  absl::string_view first = comment.substr(0, end);
  absl::ConsumeSuffix(&first, ".");
  return std::string(first);
}

// A comment of a field without the word that says whether it must be there.
std::string WithoutRequired(absl::string_view comment) {
  if (!absl::ConsumePrefix(&comment, "Required.")) absl::ConsumePrefix(&comment, "Optional.");
  return std::string(absl::StripAsciiWhitespace(comment));
}

std::string ParameterOf(absl::string_view name, absl::string_view in, bool required,
                        absl::string_view description, const std::string& schema) {
  JsonMembers members = {
      {"name", JsonText(name)}, {"in", JsonText(in)}, {"required", required ? "true" : "false"}};
  if (!description.empty()) members.emplace_back("description", JsonText(description));
  members.emplace_back("schema", schema);
  return JsonObject(members);
}

std::string Reference(absl::string_view kind, absl::string_view name) {
  return JsonObject({{"$ref", JsonText(absl::StrCat("#/components/", kind, "/", name))}});
}

std::string PathParameterOf(absl::string_view name, const std::string& comment) {
  std::string description = WithoutRequired(comment);
  for (const PathParameter& known : kPathParameters) {
    if (description.empty() && known.name == name) description = known.description;
  }
  return ParameterOf(name, "path", true, description, R"({"type":"string","minLength":1})");
}

const FieldDescriptor* FieldAt(const Descriptor& message, absl::string_view path) {
  const size_t dot = path.find('.');
  const FieldDescriptor* const field = message.FindFieldByName(std::string(path.substr(0, dot)));
  if (field == nullptr || dot == absl::string_view::npos) return field;
  return FieldAt(*field->message_type(), path.substr(dot + 1));
}

// A path of OpenAPI, and the parameters in it.
struct Template {
  std::string path;
  std::vector<std::string> parameters;
};

// A field of two segments, as in letters/versions/3, has two parameters: "name", and the one that
// is called as the segment before it, without the s of its plural.
Template TemplateOf(const RouteRule& rule, const Descriptor& request) {
  Template made;
  std::vector<std::string> names(rule.segments.size());
  for (const RouteRule::Field& field : rule.fields) {
    const bool is_pair = field.last > field.first;
    names[field.first] = is_pair ? "name" : field.path;
    if (is_pair)
      names[field.last] = std::string(absl::StripSuffix(rule.segments[field.last - 1], "s"));
    const FieldDescriptor* const described = FieldAt(request, field.path);
    PHIMAP_CHECK(described != nullptr);
    made.parameters.push_back(
        PathParameterOf(names[field.first], is_pair ? "" : CommentOf(*described)));
    if (is_pair) made.parameters.push_back(PathParameterOf(names[field.last], ""));
  }
  for (size_t i = 0; i < rule.segments.size(); ++i) {
    absl::StrAppend(&made.path, "/",
                    names[i].empty() ? rule.segments[i] : absl::StrCat("{", names[i], "}"));
  }
  if (!rule.action.empty()) absl::StrAppend(&made.path, ":", rule.action);
  return made;
}

// The document as it is made.
class Document {
 public:
  Document() {
    // The files of these are in the program only if something refers to them.
    v1::ErrorReason_descriptor();
    rpc::ErrorInfo::descriptor();
    const std::vector<RouteRule>& rules = Routes::OfApi().rules();
    for (const RouteRule& rule : rules) {
      const Descriptor* const answer = AnswerOf(MethodOf(rule));
      if (answer != nullptr) schemas_.AnswerRef(*answer);
    }
    for (const RouteRule& rule : rules) AddCall(rule);
    for (const auto& [name, description] : kExtraTags) AddTag(name, description);
    for (const Extra& extra : kExtras) AddExtra(extra);
  }

  std::string Text() {
    const std::string error = schemas_.ErrorRef(comments_.pool());
    return JsonObject(
               {{"openapi", JsonText("3.1.0")},
                {"info",
                 JsonObject({{"title", JsonText("phimap")},
                             {"version", JsonText(PHIMAP_VERSION)},
                             {"description", JsonText(kAbout)},
                             {"license", JsonObject({{"name", JsonText("Apache 2.0")},
                                                     {"identifier", JsonText("Apache-2.0")}})}})},
                {"servers", R"([{"url":"/"}])"},
                {"tags", JsonArray(tags_)},
                {"paths", Paths()},
                {"components",
                 JsonObject({{"schemas", schemas_.Components()},
                             {"parameters", HeaderParameters()},
                             {"headers", Headers()},
                             {"responses", Errors(error)},
                             {"securitySchemes", R"({"bearer":{"type":"http","scheme":"bearer",)"
                                                 R"("description":"A token of the server's )"
                                                 R"(--token_file, if it has one."}})"}})}}) +
           "\n";
  }

 private:
  const MethodDescriptor& MethodOf(const RouteRule& rule) const {
    const MethodDescriptor* const method =
        comments_.pool().FindMethodByName(rule.method->full_name());
    PHIMAP_CHECK(method != nullptr);
    return *method;
  }

  // The message whose JSON is the answer: a stream's is its result. Null for bytes.
  static const Descriptor* AnswerOf(const MethodDescriptor& method) {
    for (const char* const name : {"version", "evaluation"}) {
      if (!method.client_streaming() || !method.server_streaming()) break;
      const FieldDescriptor* const result = method.output_type()->FindFieldByName(name);
      if (result != nullptr) return result->message_type();
    }
    return method.server_streaming() ? nullptr : method.output_type();
  }

  // The schema of a body of JSON: the call's message, or the rows of a stream of them; "" for a
  // stream of bytes.
  std::string JsonBody(const Descriptor& request, const std::set<std::string>& given) {
    const FieldDescriptor* const finish = request.FindFieldByName("finish");
    if (finish == nullptr) {
      return request.FindFieldByName("chunk") == nullptr ? schemas_.RequestRef(request, given) : "";
    }
    const Descriptor& rows = *request.FindFieldByName("examples")->message_type();
    if (rows.FindFieldByName("examples") != nullptr) return schemas_.RequestRef(rows, {});
    return JsonObject({{"type", JsonText("object")},
                       {"required", R"(["rows"])"},
                       {"properties", JsonObject({{"rows", Reference("schemas", "RowsInput")}})},
                       {"additionalProperties", "false"}});
  }

  // The parameters of a stream of rows, whose query has the fields of its spec, and of their
  // messages one level deeper, and the roles of columns.
  void AddSpec(const Descriptor& request, const std::set<std::string>& given,
               std::vector<std::string>& parameters) {
    const FieldDescriptor* const spec = request.FindFieldByName("spec");
    if (spec == nullptr) {
      parameters.push_back(ParameterOf("digest", "query", false,
                                       "The SHA-256 of the artifact, which is then checked.",
                                       R"({"type":"string"})"));
      return;
    }
    AddSpecFields(*spec->message_type(), "", given, parameters);
    const bool takes_training =
        request.FindFieldByName("examples")->message_type()->FindFieldByName("parts") != nullptr;
    for (const auto& [name, trains, description] : kColumnRoles) {
      if (trains && !takes_training) continue;
      parameters.push_back(ParameterOf(name, "query", false,
                                       absl::StrCat("Of a body of CSV. ", description),
                                       R"({"type":"string"})"));
    }
  }
  void AddSpecFields(const Descriptor& spec, const std::string& prefix,
                     const std::set<std::string>& given, std::vector<std::string>& parameters) {
    for (int i = 0; i < spec.field_count(); ++i) {
      const FieldDescriptor& field = *spec.field(i);
      const std::string name = absl::StrCat(prefix, field.name());
      // The path gives the name, the header of a file its columns, and the server draws an id.
      if (given.contains("spec." + name) || field.is_repeated() || field.options().deprecated()) {
        continue;
      }
      const bool nested = field.message_type() != nullptr &&
                          field.message_type()->full_name() != "google.protobuf.Duration";
      if (nested) {
        AddSpecFields(*field.message_type(), name + ".", given, parameters);
        continue;
      }
      if (prefix == "build." &&
          (field.name() == "name" || field.name() == "build_id" || field.name() == "ttl")) {
        continue;  // the training's own
      }
      const bool required = prefix.empty() && field.name() != "build_id" && IsRequired(field);
      parameters.push_back(ParameterOf(name, "query", required, WithoutRequired(CommentOf(field)),
                                       schemas_.QueryValue(field)));
    }
  }

  void AddTag(absl::string_view name, absl::string_view description) {
    if (!tag_names_.insert(std::string(name)).second) return;
    JsonMembers tag = {{"name", JsonText(name)}};
    if (!description.empty()) tag.emplace_back("description", JsonText(description));
    tags_.push_back(JsonObject(tag));
  }

  void AddCall(const RouteRule& rule) {
    const MethodDescriptor& method = MethodOf(rule);
    const Descriptor& request = *method.input_type();
    const ServiceDescriptor& service = *method.service();
    AddTag(service.name(), ServiceComment(service));
    const std::string comment = CommentOf(method);
    Template made = TemplateOf(rule, request);
    std::vector<std::string> parameters = std::move(made.parameters);
    std::set<std::string> given;
    for (const RouteRule::Field& field : rule.fields) given.insert(field.path);
    if (method.client_streaming()) {
      AddSpec(request, given, parameters);
    } else if (!rule.has_body) {
      AddQuery(request, given, parameters);
    }
    parameters.push_back(Reference("parameters", "request-timeout"));
    parameters.push_back(Reference("parameters", "x-request-id"));
    parameters.push_back(Reference("parameters", "traceparent"));
    parameters.push_back(Reference("parameters", "phimap-min-revision"));
    // A second rule of a call has a number.
    const int rules_of_call = ++rules_of_calls_[method.name()];
    const std::string id =
        rules_of_call == 1 ? method.name() : absl::StrCat(method.name(), rules_of_call);
    JsonMembers operation = {{"operationId", JsonText(id)},
                             {"tags", JsonArray({JsonText(service.name())})},
                             {"summary", JsonText(Summary(comment))},
                             {"description", JsonText(comment)},
                             {"security", kSecurity},
                             {"parameters", JsonArray(parameters)}};
    if (rule.has_body) {
      // Even an empty object must be announced as JSON.
      operation.emplace_back(
          "requestBody",
          JsonObject({{"required", "true"},
                      {"content", Content(method.name(), false, JsonBody(request, given))}}));
    }
    operation.emplace_back(
        "responses",
        Responses(
            {{"description", JsonText("The answer.")},
             {"headers", JsonObject({{"phimap-revision", Reference("headers", "phimap-revision")},
                                     {"x-request-id", Reference("headers", "x-request-id")}})},
             {"content",
              Content(method.name(), true,
                      AnswerOf(method) == nullptr ? "" : schemas_.AnswerRef(*AnswerOf(method)))}}));
    Add(made.path, absl::AsciiStrToLower(rule.verb), JsonObject(operation));
  }

  void AddExtra(const Extra& extra) {
    JsonMembers operation = {{"operationId", JsonText(extra.id)},
                             {"tags", JsonArray({JsonText(extra.tag)})},
                             {"summary", JsonText(extra.summary)},
                             {"description", JsonText(extra.description)},
                             {"security", extra.needs_token ? kSecurity : "[]"}};
    std::vector<std::string> parameters;
    absl::string_view path = extra.path;
    for (size_t begin = path.find('{'); begin != absl::string_view::npos; begin = path.find('{')) {
      const size_t end = path.find('}');
      parameters.push_back(PathParameterOf(path.substr(begin + 1, end - begin - 1), ""));
      path.remove_prefix(end + 1);
    }
    if (!parameters.empty()) operation.emplace_back("parameters", JsonArray(parameters));
    if (const std::string content = Content(extra.id, false); content != "{}") {
      operation.emplace_back("requestBody",
                             JsonObject({{"required", "true"}, {"content", content}}));
    }
    operation.emplace_back("responses", Responses({{"description", JsonText("The answer.")},
                                                   {"content", Content(extra.id, true)}}));
    Add(extra.path, extra.verb, JsonObject(operation));
  }

  // A service has a comment of its own, or is alone in a file that has one.
  static std::string ServiceComment(const ServiceDescriptor& service) {
    return absl::StrCat("The methods of ", service.full_name(), ".",
                        CommentOf(service).empty() ? "" : " ", CommentOf(service));
  }

  void AddQuery(const Descriptor& request, const std::set<std::string>& given,
                std::vector<std::string>& parameters) {
    for (int i = 0; i < request.field_count(); ++i) {
      const FieldDescriptor& field = *request.field(i);
      if (given.contains(field.name())) continue;
      parameters.push_back(ParameterOf(field.name(), "query", IsRequired(field),
                                       WithoutRequired(CommentOf(field)),
                                       schemas_.QueryValue(field)));
    }
  }

  // `message`: the schema of the call's message; empty for what is no call.
  static std::string Content(absl::string_view operation, bool of_answer,
                             const std::string& message = "") {
    JsonMembers content;
    for (const BodyForm& form : kBodyForms) {
      const bool is_for =
          form.operation == operation || (form.operation.empty() && !message.empty());
      if (!is_for || form.of_answer != of_answer) continue;
      const std::string schema = *form.schema == '\0' ? message : form.schema;
      content.emplace_back(form.content_type, JsonObject({{"schema", schema}}));
    }
    return JsonObject(content);
  }

  static std::string Responses(const JsonMembers& answer) {
    return JsonObject({{"200", JsonObject(answer)},
                       {"4XX", Reference("responses", "Refused")},
                       {"5XX", Reference("responses", "Failed")}});
  }

  void Add(const std::string& path, const std::string& verb, std::string operation) {
    const auto same = std::find_if(paths_.begin(), paths_.end(),
                                   [&](const auto& known) { return known.first == path; });
    JsonMembers& verbs =
        same == paths_.end() ? paths_.emplace_back(path, JsonMembers()).second : same->second;
    verbs.emplace_back(verb, std::move(operation));
  }

  std::string Paths() const {
    JsonMembers paths;
    for (const auto& [path, verbs] : paths_) paths.emplace_back(path, JsonObject(verbs));
    return JsonObject(paths);
  }

  static std::string HeaderParameters() {
    return JsonObject(
        {{"request-timeout",
          ParameterOf("request-timeout", "header", false, "A deadline in seconds, such as 2.5.",
                      R"({"type":"number","minimum":0})")},
         {"x-request-id",
          ParameterOf(
              "x-request-id", "header", false,
              "Your id of the call, for the answer and the server's log: 1 to 128 printable "
              "characters of ASCII. Any other counts as absent.",
              R"({"type":"string"})")},
         {"traceparent",
          ParameterOf("traceparent", "header", false,
                      "The trace that the call belongs to, as in the W3C's Trace Context, for the "
                      "server's log. Any other text counts as absent.",
                      R"({"type":"string"})")},
         {"phimap-min-revision",
          ParameterOf("phimap-min-revision", "header", false,
                      "The phimap-revision of an answer: the call sees the change of that answer.",
                      R"({"type":"string"})")}});
  }

  static std::string Headers() {
    const auto header = [](absl::string_view description, const char* type) {
      return JsonObject({{"description", JsonText(description)},
                         {"schema", JsonObject({{"type", JsonText(type)}})}});
    };
    return JsonObject(
        {{"phimap-revision",
          header("The revision of the names, if the call changed them or saw one.", "string")},
         {"x-request-id",
          header("What the server's log calls the request: your x-request-id, if you sent one.",
                 "string")},
         {"phimap-request-id", header("The same, with errors only.", "string")},
         {"retry-after",
          header("Seconds after which the same call may succeed. Absent: waiting does not help.",
                 "integer")},
         {"www-authenticate", header("With 401: Bearer.", "string")}});
  }

  static std::string Errors(const std::string& schema) {
    const auto error = [&schema](absl::string_view description) {
      JsonMembers headers;
      for (const char* const name :
           {"x-request-id", "phimap-request-id", "retry-after", "www-authenticate"}) {
        headers.emplace_back(name, Reference("headers", name));
      }
      const std::string content =
          JsonObject({{"application/json", JsonObject({{"schema", schema}})}});
      return JsonObject({{"description", JsonText(description)},
                         {"headers", JsonObject(headers)},
                         {"content", content}});
    };
    return JsonObject(
        {{"Refused",
          error("The request cannot be answered as it is: 400 INVALID_ARGUMENT, "
                "FAILED_PRECONDITION or OUT_OF_RANGE; 401 UNAUTHENTICATED; 403 PERMISSION_DENIED; "
                "404 NOT_FOUND; 405, 406, 411, 415, 421 and 431 for its method of HTTP and its "
                "headers; 413 for a message over the limit; "
                "409 ABORTED or ALREADY_EXISTS; 429 RESOURCE_EXHAUSTED; 499 CANCELLED.")},
         {"Failed", error("The server could not answer: 500 INTERNAL, UNKNOWN or DATA_LOSS; 501 "
                          "UNIMPLEMENTED; 503 UNAVAILABLE; 504 DEADLINE_EXCEEDED.")}});
  }

  // A server without tokens takes calls without one.
  static constexpr char kSecurity[] = R"([{"bearer":[]},{}])";

  const CommentedPool comments_;
  Schemas schemas_;
  std::set<std::string> tag_names_;
  std::map<std::string, int> rules_of_calls_;
  std::vector<std::string> tags_;
  std::vector<std::pair<std::string, JsonMembers>> paths_;
};

}  // namespace

const OpenApi& OpenApi::OfApi() {
  static const OpenApi* const document = [] {
    std::string text = Document().Text();
    Sha256 hash;
    hash.Update(text);
    const std::string digest = hash.Hex();
    return new OpenApi{std::make_shared<OutputText>(std::move(text)),
                       absl::StrCat("\"", digest.substr(0, 16), "\"")};
  }();
  return *document;
}

}  // namespace phimap
