#include "server/http/routes.h"

#include <simdjson.h>

#include <cstdint>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/utf8.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/util/time_util.h"
#include "phimap/v1/learning_service.pb.h"
#include "phimap/v1/mapping_service.pb.h"
#include "phimap/v1/predict_service.pb.h"
#include "phimap/v1/transform_service.pb.h"
#include "server/http/http_status.h"

namespace phimap {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr char kRules[] =
#include "server/http/rules.inc"
    ;

// Reads a rule's path. The rules are the program's own, so one that is wrong ends it.
void ReadPath(absl::string_view path, RouteRule& rule) {
  PHIMAP_CHECK(absl::ConsumePrefix(&path, "/"));
  const size_t colon = path.rfind(':');
  if (colon != absl::string_view::npos) {
    rule.action = std::string(path.substr(colon + 1));
    path = path.substr(0, colon);
  }
  while (!path.empty()) {
    if (path[0] != '{') {
      const size_t end = path.find('/');
      rule.segments.emplace_back(path.substr(0, end));
      path.remove_prefix(end == absl::string_view::npos ? path.size() : end + 1);
      continue;
    }
    const size_t end = path.find('}');
    PHIMAP_CHECK(end != absl::string_view::npos);
    const std::vector<absl::string_view> parts =
        absl::StrSplit(path.substr(1, end - 1), absl::MaxSplits('=', 1));
    const size_t first = rule.segments.size();
    for (const absl::string_view segment :
         absl::StrSplit(parts.size() == 2 ? parts[1] : absl::string_view("*"), '/')) {
      rule.segments.emplace_back(segment);
    }
    rule.fields.push_back({std::string(parts[0]), first, rule.segments.size() - 1});
    path.remove_prefix(end + 1);
    absl::ConsumePrefix(&path, "/");
  }
}

bool Fits(const RouteRule& rule, const std::vector<std::string>& segments,
          absl::string_view action) {
  if (rule.action != action || rule.segments.size() != segments.size()) return false;
  for (size_t i = 0; i < segments.size(); ++i) {
    if (rule.segments[i] != "*" && rule.segments[i] != segments[i]) return false;
    if (segments[i].empty()) return false;
  }
  return true;
}

absl::Status WrongEncoding(absl::string_view field, absl::string_view text) {
  return MalformedHttp(field, absl::StrCat("expected UTF-8 with % only as %XX, and no %00, in the ",
                                           field, ", got ", Quoted(text)));
}

// Segments of a path and, if the path of a POST has a colon, the action behind the last one.
struct Path {
  std::vector<std::string> segments;
  std::string action;
};

absl::StatusOr<Path> ParsePath(absl::string_view verb, absl::string_view text) {
  Path path;
  absl::ConsumePrefix(&text, "/");
  if (const size_t colon = text.rfind(':'); verb == "POST" && colon != absl::string_view::npos) {
    path.action = std::string(text.substr(colon + 1));
    text = text.substr(0, colon);
  }
  for (const absl::string_view segment : absl::StrSplit(text, '/')) {
    if (!PercentDecode(segment, path.segments.emplace_back())) {
      return WrongEncoding("path", segment);
    }
  }
  return path;
}

absl::Status AddQuery(absl::string_view query, Route& route) {
  for (absl::string_view pair : absl::StrSplit(query, '&', absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(pair, absl::MaxSplits('=', 1));
    auto& [name, value] = route.query.emplace_back();
    const std::string text = parts.size() == 2 ? std::string(parts[1]) : "";
    // As forms and the libraries of most languages write a blank.
    const std::string blanks = absl::StrReplaceAll(text, {{"+", " "}});
    if (!PercentDecode(parts[0], name) || !PercentDecode(blanks, value)) {
      return WrongEncoding("query", pair);
    }
  }
  return absl::OkStatus();
}

absl::Status UnknownField(const std::string& path, const Descriptor& message) {
  std::vector<std::string> known;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const bool nested = field.message_type() != nullptr &&
                        field.message_type() != google::protobuf::Duration::descriptor();
    if (field.is_repeated() || field.options().deprecated() || absl::EndsWith(field.name(), "_0_1"))
      continue;
    known.push_back(absl::StrCat(field.name(), nested ? ".…" : ""));
  }
  return MalformedHttp(path, absl::StrCat("this call has no field ", Quoted(path), "; ",
                                          message.name(), " has ", absl::StrJoin(known, ", ")));
}

absl::Status WrongValue(const std::string& path, absl::string_view expected,
                        const std::string& value) {
  return MalformedHttp(path, absl::StrCat("expected ", expected, ", got ", Quoted(value)));
}

absl::Status SetText(Message& message, const FieldDescriptor& field, const std::string& path,
                     const std::string& value) {
  const Reflection& reflection = *message.GetReflection();
  const std::string before =
      reflection.HasField(message, &field) ? reflection.GetString(message, &field) : value;
  if (before != value) {
    return WrongValue(path, absl::StrCat("what the path says, ", Quoted(value)), before);
  }
  reflection.SetString(&message, &field, value);
  return absl::OkStatus();
}

absl::Status SetOne(Message& message, const FieldDescriptor& field, const std::string& path,
                    const std::string& value) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return SetText(message, field, path, value);
    case FieldDescriptor::CPPTYPE_BOOL:
      if (value != "true" && value != "false") return WrongValue(path, "true or false", value);
      reflection.SetBool(&message, &field, value == "true");
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_INT32: {
      int32_t number = 0;
      if (!absl::SimpleAtoi(value, &number)) return WrongValue(path, "an integer", value);
      reflection.SetInt32(&message, &field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      int64_t number = 0;
      if (!absl::SimpleAtoi(value, &number)) return WrongValue(path, "an integer", value);
      reflection.SetInt64(&message, &field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      uint64_t number = 0;
      if (!absl::SimpleAtoi(value, &number)) return WrongValue(path, "an integer from 0", value);
      reflection.SetUInt64(&message, &field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double number = 0;
      if (!absl::SimpleAtod(value, &number)) return WrongValue(path, "a number", value);
      reflection.SetDouble(&message, &field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto* const named = field.enum_type()->FindValueByName(value);
      if (named == nullptr) {
        return WrongValue(path, absl::StrCat("a name of ", field.enum_type()->name()), value);
      }
      reflection.SetEnum(&message, &field, named);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (field.message_type() == google::protobuf::Duration::descriptor()) {
        auto& duration =
            static_cast<google::protobuf::Duration&>(*reflection.MutableMessage(&message, &field));
        if (google::protobuf::util::TimeUtil::FromString(value, &duration)) return absl::OkStatus();
        return WrongValue(path, "seconds with an s, such as 3600s", value);
      }
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_FLOAT:
      break;
  }
  return MalformedHttp(path, absl::StrCat(path, " cannot be given in a query"));
}

}  // namespace

bool PercentDecode(absl::string_view text, std::string& decoded) {
  decoded.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    if (i + 2 >= text.size() || !absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 1])) ||
        !absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 2]))) {
      return false;
    }
    decoded += absl::HexStringToBytes(text.substr(i + 1, 2));
    if (decoded.back() == '\0') return false;
    i += 2;
  }
  return IsUtf8(decoded);
}

const Routes& Routes::OfApi() {
  static const Routes* const routes = [] {
    // The files of the services are in the program only if something refers to them.
    v1::GetMappingRequest::descriptor();
    v1::TransformRequest::descriptor();
    v1::PredictRequest::descriptor();
    v1::TrainRequest::descriptor();
    auto* const read = new Routes;
    simdjson::dom::parser parser;
    const simdjson::dom::element rules = parser.parse(simdjson::padded_string(std::string(kRules)));
    for (const simdjson::dom::element rule : rules["http"]["rules"].get_array()) {
      RouteRule& added = read->rules_.emplace_back();
      for (const char* const verb : {"get", "post", "delete"}) {
        std::string_view path;
        if (rule[verb].get(path) != simdjson::SUCCESS) continue;
        added.verb = absl::AsciiStrToUpper(verb);
        ReadPath(absl::string_view(path.data(), path.size()), added);
      }
      std::string_view body;
      added.has_body = rule["body"].get(body) == simdjson::SUCCESS;
      const std::string selector(rule["selector"].get_string().value());
      added.method = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(selector);
      PHIMAP_CHECK(added.method != nullptr && !added.verb.empty());
    }
    return read;
  }();
  return *routes;
}

absl::StatusOr<Route> Routes::Find(absl::string_view verb, absl::string_view target) const {
  const size_t question = target.find('?');
  const absl::string_view text = target.substr(0, question);
  PHIMAP_ASSIGN_OR_RETURN(const Path path, ParsePath(verb, text));
  // With another method of HTTP, the path might have an action.
  PHIMAP_ASSIGN_OR_RETURN(const Path whole, ParsePath("GET", text));
  PHIMAP_ASSIGN_OR_RETURN(const Path acting, ParsePath("POST", text));
  std::vector<std::string> others;
  // A path of an action is that of no name, which has no colon.
  for (const RouteRule& rule : rules_) {
    const bool acts = verb != "POST" && rule.verb == "POST" && !rule.action.empty();
    if (acts && Fits(rule, acting.segments, acting.action)) return WrongVerb(text, {"POST"}, verb);
  }
  for (const RouteRule& rule : rules_) {
    const Path& as_it_would_be = rule.verb == "POST" ? acting : whole;
    if (!Fits(rule, as_it_would_be.segments, as_it_would_be.action)) continue;
    if (rule.verb != verb) {
      // An action that does not exist is no name with a colon.
      if (path.action.empty()) others.push_back(rule.verb);
      continue;
    }
    Route route{&rule, {}, {}};
    for (const RouteRule::Field& field : rule.fields) {
      std::string value = path.segments[field.first];
      if (field.last > field.first) absl::StrAppend(&value, "@", path.segments[field.last]);
      route.fields.emplace_back(field.path, std::move(value));
    }
    if (question != absl::string_view::npos) {
      PHIMAP_RETURN_IF_ERROR(AddQuery(target.substr(question + 1), route));
    }
    return route;
  }
  if (!others.empty()) {
    if (absl::c_linear_search(others, "GET")) others.emplace_back("HEAD");
    return WrongVerb(text, others, verb);
  }
  return MakeError(absl::StatusCode::kNotFound, reason::kMethodUnknown, "",
                   absl::StrCat("nothing is served at ", Quoted(text),
                                "; the paths begin with /v1/mappings, as in "
                                "/v1/mappings/letters@prod:transform"));
}

absl::Status SetFields(const std::vector<std::pair<std::string, std::string>>& fields,
                       Message& message) {
  absl::flat_hash_set<absl::string_view> seen;
  for (const auto& [path, value] : fields) {
    if (!seen.insert(path).second) return MalformedHttp(path, "expected once, got it twice");
    Message* holder = &message;
    const std::vector<std::string> names = absl::StrSplit(path, '.');
    const FieldDescriptor* field = nullptr;
    for (size_t i = 0; i < names.size(); ++i) {
      field = holder->GetDescriptor()->FindFieldByName(names[i]);
      const bool last = i + 1 == names.size();
      if (field == nullptr || field->is_repeated() ||
          (!last && field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)) {
        return UnknownField(path, *holder->GetDescriptor());
      }
      if (last) break;
      holder = holder->GetReflection()->MutableMessage(holder, field);
    }
    PHIMAP_RETURN_IF_ERROR(SetOne(*holder, *field, path, value));
  }
  return absl::OkStatus();
}

}  // namespace phimap
