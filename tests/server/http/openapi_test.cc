// Holds the description of the API against what it describes: the rules, the descriptors of the
// messages, and the JSON that is read and printed.
#include "server/http/openapi.h"

#include <simdjson.h>

#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "phimap/v1/error_reason.pb.h"
#include "server/http/http_status.h"
#include "server/http/json.h"
#include "server/http/routes.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

namespace dom = simdjson::dom;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class OpenApiTest : public ::testing::Test {
 protected:
  OpenApiTest() {
    document_ = parser_.parse(simdjson::padded_string(std::string(OpenApi::OfApi().text->bytes())));
  }

  // What `value` refers to, or itself.
  dom::element Resolved(dom::element value) const {
    std::string_view reference;
    if (!value.is_object() || value["$ref"].get(reference) != simdjson::SUCCESS) return value;
    dom::element found;
    if (document_.at_pointer(reference.substr(1)).get(found) != simdjson::SUCCESS) {
      ADD_FAILURE() << "nothing at " << reference;
      return value;
    }
    return found;
  }

  static bool Has(dom::element object, std::string_view name) {
    return object.is_object() && object[name].error() == simdjson::SUCCESS;
  }

  static std::string TextOf(dom::element object, std::string_view name) {
    std::string_view text;
    EXPECT_EQ(object[name].get(text), simdjson::SUCCESS) << name;
    return std::string(text);
  }

  // The operations of the calls, by their ids: not those of what is served beside the calls.
  struct Operation {
    std::string path;
    std::string verb;
    dom::element value;
  };
  std::map<std::string, Operation> Calls() const {
    std::map<std::string, Operation> calls;
    for (const auto& [path, verbs] : dom::object(document_["paths"])) {
      if (!absl::StartsWith(absl::string_view(path.data(), path.size()), "/v1/")) continue;
      for (const auto& [verb, operation] : dom::object(verbs)) {
        const bool is_new = calls
                                .emplace(TextOf(operation, "operationId"),
                                         Operation{std::string(path), std::string(verb), operation})
                                .second;
        EXPECT_TRUE(is_new) << path;
      }
    }
    return calls;
  }

  std::set<std::string> ParametersIn(dom::element operation, absl::string_view place) const {
    std::set<std::string> names;
    for (const dom::element one : dom::array(operation["parameters"])) {
      const dom::element parameter = Resolved(one);
      if (TextOf(parameter, "in") == place) names.insert(TextOf(parameter, "name"));
    }
    return names;
  }

  static dom::element JsonSchemaOf(dom::element body) {
    return body["content"]["application/json"]["schema"];
  }

  // Checks that `schema` has every field of `message` and of the messages in it.
  void CheckFields(dom::element schema, const Descriptor& message, bool is_answer,
                   std::set<std::string>& seen) {
    const std::string name = TextOf(schema, "$ref");
    if (!seen.insert(name).second) return;
    const dom::element resolved = Resolved(schema);
    if (message.field_count() == 0) return;
    ASSERT_TRUE(Has(resolved, "properties")) << name;
    const dom::object properties = resolved["properties"];
    for (int i = 0; i < message.field_count(); ++i) {
      const FieldDescriptor& field = *message.field(i);
      dom::element property;
      ASSERT_EQ(properties[field.name()].get(property), simdjson::SUCCESS) << field.full_name();
      if (field.is_repeated()) {
        EXPECT_EQ(TextOf(property, "type"), "array") << field.full_name();
        property = property["items"];
      }
      const Descriptor* const inner = field.message_type();
      if (inner == nullptr || absl::StartsWith(inner->full_name(), "google.protobuf.")) continue;
      const bool is_rows = is_answer && inner->name() == "DenseRows";
      if (!is_rows) CheckFields(property, *inner, /*is_answer=*/false, seen);
    }
  }

  // Returns why `value` does not fit `schema`, or an empty text. Objects have no unknown members.
  std::string Misfit(dom::element schema, dom::element value, const std::string& place) const {
    schema = Resolved(schema);
    if (Has(schema, "oneOf")) {
      int fitting = 0;
      for (const dom::element one : dom::array(schema["oneOf"])) {
        fitting += Misfit(one, value, place).empty() ? 1 : 0;
      }
      return fitting == 1 ? "" : absl::StrCat(place, " fits ", fitting, " forms");
    }
    const std::string type = TextOf(schema, "type");
    const bool fits = type == "object"    ? value.is_object()
                      : type == "array"   ? value.is_array()
                      : type == "string"  ? value.is_string()
                      : type == "boolean" ? value.is_bool()
                      : type == "integer" ? value.is_int64() || value.is_uint64()
                                          : value.is_number();
    if (!fits) return absl::StrCat(place, " is no ", type);
    for (const char* const list : {"enum", "const"}) {
      if (!Has(schema, list)) continue;
      const std::string allowed = simdjson::minify(schema[list]);
      if (!absl::StrContains(allowed, std::string(simdjson::minify(value)))) {
        return absl::StrCat(place, " is not of ", allowed);
      }
    }
    if (type == "array") {
      for (const dom::element item : dom::array(value)) {
        if (std::string why = Misfit(schema["items"], item, place + "[]"); !why.empty()) return why;
      }
    }
    if (type != "object") return "";
    for (const auto& [name, member] : dom::object(value)) {
      const std::string at = absl::StrCat(place, ".", absl::string_view(name.data(), name.size()));
      dom::element property;
      if (!Has(schema, "properties") ||
          schema["properties"][name].get(property) != simdjson::SUCCESS) {
        if (schema["additionalProperties"].get(property) != simdjson::SUCCESS ||
            !property.is_object()) {
          return at + " is not in the schema";
        }
      }
      if (std::string why = Misfit(property, member, at); !why.empty()) return why;
    }
    if (!Has(schema, "required")) return "";
    for (const dom::element name : dom::array(schema["required"])) {
      if (!Has(value, std::string_view(name))) {
        return absl::StrCat(place, " has no ", std::string(std::string_view(name)));
      }
    }
    return "";
  }

  dom::parser parser_;
  dom::element document_;
};

// Sets every field of a message, the last one of each oneof, with one value in each array.
void Fill(Message& message, int depth) {
  const Reflection& reflection = *message.GetReflection();
  const Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* const field = type.field(i);
    const auto set = [&](auto add, auto one, auto value) {
      field->is_repeated() ? (reflection.*add)(&message, field, value)
                           : (reflection.*one)(&message, field, value);
    };
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        set(&Reflection::AddInt32, &Reflection::SetInt32, 1);
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        set(&Reflection::AddInt64, &Reflection::SetInt64, int64_t{1000000007});
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        set(&Reflection::AddUInt32, &Reflection::SetUInt32, 1U);
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        set(&Reflection::AddUInt64, &Reflection::SetUInt64, ~uint64_t{0});
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        // Every other number is one that JSON has no number for.
        set(&Reflection::AddDouble, &Reflection::SetDouble,
            i % 2 == 0 ? 0.5 : std::numeric_limits<double>::infinity());
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
        set(&Reflection::AddFloat, &Reflection::SetFloat, 0.5F);
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        set(&Reflection::AddBool, &Reflection::SetBool, true);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        set(&Reflection::AddEnumValue, &Reflection::SetEnumValue, 1);
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        if (field->is_repeated()) {
          reflection.AddString(&message, field, "text");
        } else {
          reflection.SetString(&message, field, "text");
        }
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth == 0) break;
        Fill(field->is_repeated() ? *reflection.AddMessage(&message, field)
                                  : *reflection.MutableMessage(&message, field),
             depth - 1);
        break;
    }
  }
}

bool IsStream(const RouteRule& rule) {
  return rule.method->client_streaming() || rule.method->server_streaming();
}

// The path of an operation, with a name in place of each parameter, leads to the rule of its call.
TEST_F(OpenApiTest, EachRuleIsAnOperationAtItsPath) {
  const std::map<std::string, Operation> calls = Calls();
  const std::vector<RouteRule>& rules = Routes::OfApi().rules();
  EXPECT_EQ(calls.size(), rules.size());
  std::map<std::string, int> rules_of_calls;
  for (const RouteRule& rule : rules) {
    const int number = ++rules_of_calls[rule.method->name()];
    const std::string id =
        number == 1 ? rule.method->name() : absl::StrCat(rule.method->name(), number);
    const auto found = calls.find(id);
    ASSERT_NE(found, calls.end()) << id;
    const Operation& operation = found->second;
    std::string target = operation.path;
    for (const std::string& name : ParametersIn(operation.value, "path")) {
      const std::string before = target;
      target = absl::StrReplaceAll(target, {{absl::StrCat("{", name, "}"), "letters"}});
      EXPECT_NE(target, before) << name;
    }
    EXPECT_FALSE(absl::StrContains(target, "{")) << target;
    const auto route = Routes::OfApi().Find(absl::AsciiStrToUpper(operation.verb), target);
    ASSERT_TRUE(route.ok()) << route.status() << target;
    EXPECT_EQ(route->rule, &rule) << target;
    EXPECT_EQ(Has(operation.value, "requestBody"), rule.has_body) << target;
  }
}

TEST_F(OpenApiTest, EachReferenceLeadsToSomething) {
  int references = 0;
  const auto walk = [&](const auto& self, dom::element value) -> void {
    if (value.is_array()) {
      for (const dom::element item : dom::array(value)) self(self, item);
    }
    if (!value.is_object()) return;
    if (Has(value, "$ref")) {
      ++references;
      Resolved(value);
    }
    for (const auto& [name, member] : dom::object(value)) self(self, member);
  };
  walk(walk, document_);
  EXPECT_GT(references, 100);
}

TEST_F(OpenApiTest, EachFieldOfEachMessageIsThere) {
  std::map<std::string, Operation> calls = Calls();
  std::set<std::string> answers;
  std::set<std::string> requests;
  for (const RouteRule& rule : Routes::OfApi().rules()) {
    if (IsStream(rule)) continue;
    const dom::element operation = calls[rule.method->name()].value;
    const Descriptor& request = *rule.method->input_type();
    CheckFields(JsonSchemaOf(operation["responses"]["200"]), *rule.method->output_type(),
                /*is_answer=*/true, answers);
    if (rule.has_body) {
      CheckFields(JsonSchemaOf(operation["requestBody"]), request, /*is_answer=*/false, requests);
      continue;
    }
    if (rule.fields.empty() && rule.method->name() == "ListBuilds") continue;  // its second rule
    std::set<std::string> given = ParametersIn(operation, "query");
    for (const RouteRule::Field& field : rule.fields) given.insert(field.path);
    std::set<std::string> expected;
    for (int i = 0; i < request.field_count(); ++i) expected.insert(request.field(i)->name());
    EXPECT_EQ(given, expected) << request.name();
  }
}

TEST_F(OpenApiTest, EachAnswerIsPrintedAsItsSchemaSays) {
  std::map<std::string, Operation> calls = Calls();
  for (const RouteRule& rule : Routes::OfApi().rules()) {
    if (IsStream(rule)) continue;
    const Descriptor* const type = rule.method->output_type();
    const std::unique_ptr<Message> message(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
    Fill(*message, /*depth=*/8);
    // Two numbers of four bytes are a row of two columns.
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor* const field = type->field(i);
      if (field->message_type() == nullptr || field->message_type()->name() != "DenseRows")
        continue;
      Message& rows = *message->GetReflection()->MutableMessage(message.get(), field);
      const Descriptor& fields = *rows.GetDescriptor();
      const Reflection& reflection = *rows.GetReflection();
      reflection.SetInt32(&rows, fields.FindFieldByName("columns"), 2);
      reflection.SetString(&rows, fields.FindFieldByName("float32_le"), std::string(8, '\0'));
    }
    dom::parser parser;
    const dom::element printed = parser.parse(simdjson::padded_string(PrintJson(*message)));
    const dom::element schema = JsonSchemaOf(calls[rule.method->name()].value["responses"]["200"]);
    EXPECT_EQ(Misfit(schema, printed, type->name()), "");
    EXPECT_EQ(dom::object(printed).size() > 0, type->field_count() > 0) << type->name();
  }
}

// The types of the bodies of a request or an answer.
std::set<std::string> TypesOf(dom::element body) {
  std::set<std::string> types;
  for (const auto& [type, schema] : dom::object(body["content"])) types.emplace(type);
  return types;
}

TEST_F(OpenApiTest, StreamsTakeRowsAndTheirSpecInTheQuery) {
  std::map<std::string, Operation> calls = Calls();
  using Names = std::set<std::string>;
  const Names roles = {"columns", "exclude", "label", "weights", "groups", "parts", "delimiter"};
  const auto query = [&](const char* call) {
    Names names = ParametersIn(calls[call].value, "query");
    if (absl::string_view(call) == "Import") return names;
    for (const std::string& role : roles) {
      const bool trains = role == "weights" || role == "groups" || role == "parts";
      EXPECT_EQ(names.erase(role), trains && absl::string_view(call) != "Train" ? 0U : 1U)
          << call << role;
    }
    return names;
  };
  EXPECT_EQ(query("Build"), Names({"build_id", "spec", "kernel", "standardize", "seed", "ttl"}));
  EXPECT_EQ(query("Train"),
            Names({"build_id", "learner", "task", "seed", "expected_digest", "column_names_hash",
                   "learn_scales", "ttl", "build.spec", "build.kernel", "build.standardize",
                   "build.seed", "tuning.budget", "tuning.max_landmarks"}));
  EXPECT_EQ(query("Evaluate"), Names({"learner", "held_out", "folds", "seed", "confidence",
                                      "expected_digest", "column_names_hash"}));
  EXPECT_EQ(query("Import"), Names({"digest"}));
  for (const char* const call : {"Build", "Train", "Evaluate"}) {
    const dom::element operation = calls[call].value;
    EXPECT_EQ(TypesOf(operation["requestBody"]),
              Names({"text/csv", "application/x-npy", "application/json"}))
        << call;
    EXPECT_EQ(TypesOf(operation["responses"]["200"]),
              Names({"application/json", "application/x-ndjson"}));
    EXPECT_EQ(TextOf(JsonSchemaOf(operation["responses"]["200"]), "$ref"),
              absl::string_view(call) == "Evaluate" ? "#/components/schemas/Evaluation"
                                                    : "#/components/schemas/Version");
  }
  EXPECT_EQ(TypesOf(calls["Import"].value["requestBody"]), Names({"application/octet-stream"}));
  EXPECT_EQ(TypesOf(calls["Export"].value["responses"]["200"]),
            Names({"application/octet-stream"}));
  EXPECT_EQ(TypesOf(calls["Transform"].value["requestBody"]),
            Names({"application/json", "text/csv", "application/x-npy"}));
}

TEST_F(OpenApiTest, AnErrorIsPrintedAsItsSchemaSays) {
  const HttpError error = HttpErrorOf(MalformedHttp("rows", "expected rows"));
  dom::parser parser;
  const dom::element printed = parser.parse(simdjson::padded_string(error.body));
  std::map<std::string, Operation> calls = Calls();
  const dom::element refused = Resolved(calls["Transform"].value["responses"]["4XX"]);
  EXPECT_EQ(Misfit(JsonSchemaOf(refused), printed, "error"), "");
}

TEST_F(OpenApiTest, RequestsThatTheSchemasAllowAreRead) {
  std::map<std::string, Operation> calls = Calls();
  const struct {
    const char* call;
    const char* body;
    bool fits;
  } cases[] = {
      {"Transform", R"({"rows": [[1, 2], [3, 4]], "residual": true})", true},
      {"Transform", R"({"rows": ["a", "b"], "column_names_hash": "18446744073709551615"})", true},
      {"Transform", R"({"rows": ["a"], "column_names_hash": 7})", true},
      {"Transform", R"({"row": [[1]]})", false},
      {"Transform", R"({"rows": [["1"]]})", false},
      {"Transform", R"({"rows": [[1]], "residual": "maybe"})", false},
      {"Transform", R"({"examples": {"dense": {"float64_le": "AAAAAAAA8D8=", "rows": 1}}})", true},
      {"KeepVersion", R"({"ttl": "3600s"})", true},
      {"KeepVersion", R"({"ttl": 3600})", false},
      {"Advise", R"({"margin": 0.1, "error": 0.2, "confidence": 0.9, "points": 7})", true},
      {"EstimateBuild", R"({"spec": {"seed": "3", "ttl": "60s"}, "rows": 9, "columns": 3})", true},
      {"EstimateBuild", R"({"spec": {"seeds": 3}, "rows": 9, "columns": 3})", false}};
  for (const auto& [call, body, fits] : cases) {
    dom::parser parser;
    const dom::element parsed = parser.parse(simdjson::padded_string(std::string(body)));
    const Operation& operation = calls[call];
    EXPECT_EQ(Misfit(JsonSchemaOf(operation.value["requestBody"]), parsed, call).empty(), fits)
        << body;
    const Descriptor* type = nullptr;
    for (const RouteRule& rule : Routes::OfApi().rules()) {
      if (rule.method->name() == call) type = rule.method->input_type();
    }
    ASSERT_NE(type, nullptr);
    const std::unique_ptr<Message> message(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
    EXPECT_EQ(ParseJson(body, *message).ok(), fits) << body;
  }
}

TEST_F(OpenApiTest, ReasonsAreTheValuesOfErrorReason) {
  std::set<std::string> expected;
  const auto& type = *v1::ErrorReason_descriptor();
  for (int i = 1; i < type.value_count(); ++i) {
    expected.emplace(absl::StripPrefix(type.value(i)->name(), "ERROR_REASON_"));
  }
  std::set<std::string> reasons;
  for (const dom::element one :
       dom::array(document_["components"]["schemas"]["ErrorReason"]["enum"])) {
    reasons.emplace(std::string_view(one));
  }
  EXPECT_EQ(reasons, expected);
}

// The descriptors of the program have no comments: these come from the protos.
TEST_F(OpenApiTest, CallsAndFieldsHaveTheCommentsOfTheProtos) {
  std::map<std::string, Operation> calls = Calls();
  for (const auto& [id, operation] : calls) {
    EXPECT_FALSE(TextOf(operation.value, "summary").empty()) << id;
    EXPECT_TRUE(absl::StartsWith(TextOf(operation.value, "description"),
                                 TextOf(operation.value, "summary")))
        << id;
  }
  EXPECT_EQ(TextOf(calls["GetMapping"].value, "description"), "Returns a mapping.");
  const dom::element request = document_["components"]["schemas"]["SetAliasRequest"];
  EXPECT_TRUE(absl::StrContains(TextOf(request["properties"]["etag"], "description"),
                                "\"none\" means that it must not exist"));
}

}  // namespace
}  // namespace phimap::testing
