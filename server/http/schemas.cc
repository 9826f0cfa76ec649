#include "server/http/schemas.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status/check.h"
#include "google/protobuf/descriptor.pb.h"
#include "server/observe/json_text.h"

namespace phimap {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::OneofDescriptor;
using google::protobuf::ServiceDescriptor;

constexpr absl::string_view kDuration = "google.protobuf.Duration";
constexpr absl::string_view kTimestamp = "google.protobuf.Timestamp";

// The values that protobuf's JSON writes in a way of its own, and the rows.
struct Fixed {
  const char* name;
  const char* description;
  const char* schema;
};
constexpr Fixed kFixed[] = {
    {"Int64", "An integer of 64 bits, as a text, because many programs read numbers as float64.",
     R"({"type":"string","pattern":"^-?[0-9]+$"})"},
    {"Uint64",
     "An integer of 64 bits from 0, as a text, because many programs read numbers as float64.",
     R"({"type":"string","pattern":"^[0-9]+$"})"},
    {"Int64Input", "An integer of 64 bits, as a text or as a number.",
     R"({"oneOf":[{"type":"string","pattern":"^-?[0-9]+$"},{"type":"integer"}]})"},
    {"Uint64Input", "An integer of 64 bits from 0, as a text or as a number.",
     R"({"oneOf":[{"type":"string","pattern":"^[0-9]+$"},{"type":"integer","minimum":0}]})"},
    {"Double", "A number of float64, or one of three texts for what JSON has no number for.",
     R"({"oneOf":[{"type":"number"},)"
     R"({"type":"string","enum":["NaN","Infinity","-Infinity"]}]})"},
    {"Duration", "Seconds with the letter s, such as 3600s or 2.5s.",
     R"({"type":"string","pattern":"^-?[0-9]+(\\.[0-9]{1,9})?s$"})"},
    {"Timestamp", "A time of RFC 3339.", R"({"type":"string","format":"date-time"})"},
    {"Rows",
     "One array of finite numbers per row. A float32 comes as the number of float64 that it is.",
     R"({"type":"array","items":{"type":"array","items":{"type":"number"}}})"},
    {"RowsInput", "Rows of numbers, all of one length, or texts.",
     R"({"oneOf":[{"type":"array","minItems":1,"maxItems":65536,"items":)"
     R"({"type":"array","minItems":1,"maxItems":65536,"items":{"type":"number"}}},)"
     R"({"type":"array","minItems":1,"maxItems":65536,"items":{"type":"string"}}]})"}};

std::string Ref(absl::string_view name) {
  return JsonObject({{"$ref", JsonText(absl::StrCat("#/components/schemas/", name))}});
}

// Adds a member to an object.
std::string With(const std::string& object, absl::string_view name, const std::string& value) {
  if (value.empty() || value == "\"\"") return object;
  return absl::StrCat(object.substr(0, object.size() - 1), object.size() > 2 ? "," : "",
                      JsonText(name), ":", value, "}");
}

// The name of a message or an enum without its package, as AdviseResponse.Line.
template <typename Type>
std::string SchemaName(const Type& type) {
  absl::string_view name = type.full_name();
  PHIMAP_CHECK(absl::ConsumePrefix(&name, type.file()->package()));
  PHIMAP_CHECK(absl::ConsumePrefix(&name, "."));
  return std::string(name);
}

bool IsRows(const FieldDescriptor& field) {
  return field.message_type() != nullptr && !field.is_repeated() &&
         field.message_type()->full_name() == "phimap.v1.DenseRows";
}

bool HasExamples(const Descriptor& message) {
  const FieldDescriptor* const field = message.FindFieldByName("examples");
  return field != nullptr && field->message_type() != nullptr &&
         field->message_type()->full_name() == "phimap.v1.Examples";
}

std::string TextArray(const std::vector<std::string>& names) {
  std::vector<std::string> texts;
  for (const std::string& name : names) texts.push_back(JsonText(name));
  return JsonArray(texts);
}

// Appends a schema for each two of `names`, which an object with both of them fits.
void AppendPairs(const std::vector<std::string>& names, std::vector<std::string>& pairs) {
  for (size_t i = 0; i < names.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      pairs.push_back(JsonObject({{"required", TextArray({names[j], names[i]})}}));
    }
  }
}

// A schema of an object. At most one field of each oneof may be there, and of `others`.
std::string ObjectOf(const Descriptor& message, const JsonMembers& properties,
                     const std::vector<std::string>& required,
                     const std::vector<std::string>& others = {}) {
  std::string schema = JsonObject({{"type", JsonText("object")}});
  schema = With(schema, "description", JsonText(CommentOf(message)));
  if (!properties.empty()) schema = With(schema, "properties", JsonObject(properties));
  if (!required.empty()) schema = With(schema, "required", TextArray(required));
  std::vector<std::string> pairs;
  AppendPairs(others, pairs);
  for (int i = 0; i < message.real_oneof_decl_count(); ++i) {
    std::vector<std::string> names;
    const OneofDescriptor& oneof = *message.oneof_decl(i);
    for (int j = 0; j < oneof.field_count(); ++j) names.push_back(oneof.field(j)->name());
    AppendPairs(names, pairs);
  }
  if (pairs.empty()) return schema;
  return With(schema, "not", JsonObject({{"anyOf", JsonArray(pairs)}}));
}

}  // namespace

std::string JsonText(absl::string_view text) {
  std::string json;
  AppendJsonText(text, json);
  return json;
}

std::string JsonObject(const JsonMembers& members) {
  return absl::StrCat(
      "{",
      absl::StrJoin(members, ",",
                    [](std::string* out, const std::pair<std::string, std::string>& member) {
                      absl::StrAppend(out, JsonText(member.first), ":", member.second);
                    }),
      "}");
}

std::string JsonArray(const std::vector<std::string>& values) {
  return absl::StrCat("[", absl::StrJoin(values, ","), "]");
}

template <typename Type>
std::string CommentOf(const Type& descriptor) {
  google::protobuf::SourceLocation location;
  if (!descriptor.GetSourceLocation(&location)) return "";
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(location.leading_comments, '\n')) {
    lines.emplace_back(absl::StripAsciiWhitespace(line));
  }
  std::string text = absl::StrJoin(lines, "\n");
  absl::StripAsciiWhitespace(&text);
  std::vector<std::string> paragraphs = absl::StrSplit(text, "\n\n");
  for (std::string& paragraph : paragraphs) {
    paragraph = absl::StrReplaceAll(paragraph, {{"\n", " "}});
  }
  return absl::StrJoin(paragraphs, "\n\n");
}
template std::string CommentOf(const Descriptor&);
template std::string CommentOf(const EnumDescriptor&);
template std::string CommentOf(const EnumValueDescriptor&);
template std::string CommentOf(const FieldDescriptor&);
template std::string CommentOf(const MethodDescriptor&);
template std::string CommentOf(const ServiceDescriptor&);

bool IsRequired(const FieldDescriptor& field) {
  return absl::StartsWith(CommentOf(field), "Required.");
}

Schemas::Schemas() {
  for (const Fixed& fixed : kFixed) {
    schemas_.emplace(fixed.name, With(fixed.schema, "description", JsonText(fixed.description)));
  }
}

std::string Schemas::AnswerRef(const Descriptor& message) {
  std::string ref = MessageRef(message, Form::kPrinted);
  // Rows are arrays only in the answer itself, and not in a message within it.
  JsonMembers properties = Properties(message, Form::kPrinted);
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (!IsRows(field)) continue;
    properties[i].second = With(Ref("Rows"), "description", JsonText(CommentOf(field)));
  }
  schemas_[SchemaName(message)] = ObjectOf(message, properties, {});
  return ref;
}

std::string Schemas::RequestRef(const Descriptor& message, const std::set<std::string>& given) {
  const bool has_examples = HasExamples(message);
  JsonMembers properties = Properties(message, Form::kRead);
  std::vector<std::string> required;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (given.contains(field.name())) {
      properties[i].second =
          With(Value(field, Form::kRead), "description",
               JsonText("The path gives it; a body may only say the same. " + CommentOf(field)));
    } else if (IsRequired(field) && !(has_examples && field.name() == "examples")) {
      required.push_back(field.name());
    }
  }
  if (has_examples) {
    properties.emplace_back(
        "rows", With(Ref("RowsInput"), "description",
                     JsonText("Rows in place of `examples`; one of both is required.")));
  }
  const std::string name = SchemaName(message);
  const std::vector<std::string> either = {"rows", "examples"};
  schemas_[name] = With(
      ObjectOf(message, properties, required, has_examples ? either : std::vector<std::string>()),
      "additionalProperties", "false");
  return Ref(name);
}

std::string Schemas::ErrorRef(const DescriptorPool& pool) {
  std::vector<std::string> details;
  for (const char* const name : {"ErrorInfo", "BadRequest", "RetryInfo"}) {
    const Descriptor* const message = pool.FindMessageTypeByName(absl::StrCat("phimap.rpc.", name));
    PHIMAP_CHECK(message != nullptr);
    JsonMembers properties = Properties(*message, Form::kDetail);
    const std::string type = absl::StrCat("type.googleapis.com/google.rpc.", name);
    properties.emplace(properties.begin(), "@type",
                       JsonObject({{"type", JsonText("string")}, {"const", JsonText(type)}}));
    schemas_[name] = ObjectOf(*message, properties, {"@type"});
    details.push_back(Ref(name));
  }
  schemas_["Status"] = JsonObject(
      {{"type", JsonText("object")},
       {"description", JsonText("An error, as google.rpc.Status.")},
       {"required", TextArray({"code", "message", "details"})},
       {"properties",
        JsonObject(
            {{"code", R"({"type":"integer","minimum":1,"maximum":16,"description":)"
                      R"("A code of gRPC, google.rpc.Code."})"},
             {"message", R"({"type":"string","description":"What was expected, what came )"
                         R"(and the limit, for people."})"},
             {"details", JsonObject({{"type", JsonText("array")},
                                     {"items", JsonObject({{"oneOf", JsonArray(details)}})}})}})}});
  return Ref("Status");
}

std::string Schemas::QueryValue(const FieldDescriptor& field) { return Value(field, Form::kRead); }

std::string Schemas::Components() const {
  return JsonObject(JsonMembers(schemas_.begin(), schemas_.end()));
}

std::string Schemas::MessageRef(const Descriptor& message, Form form) {
  if (message.full_name() == kDuration) return Ref("Duration");
  if (message.full_name() == kTimestamp) return Ref("Timestamp");
  std::string name = SchemaName(message);
  if (form == Form::kPrinted) printed_.insert(name);
  if (form == Form::kRead && printed_.contains(name)) name += "Input";
  // A message may hold itself, so the name is taken before the fields are described.
  if (!schemas_.emplace(name, "").second) return Ref(name);
  std::string schema = ObjectOf(message, Properties(message, form), {});
  if (form == Form::kRead) schema = With(schema, "additionalProperties", "false");
  schemas_[name] = std::move(schema);
  return Ref(name);
}

std::string Schemas::EnumRef(const EnumDescriptor& type) {
  const std::string name = SchemaName(type);
  if (schemas_.contains(name)) return Ref(name);
  // The reasons of errors are printed without their prefix, and an error without one has no field.
  const bool is_reason = type.full_name() == "phimap.v1.ErrorReason";
  std::vector<std::string> values;
  std::string description = CommentOf(type);
  for (int i = 0; i < type.value_count(); ++i) {
    absl::string_view value = type.value(i)->name();
    if (is_reason && type.value(i)->number() == 0) continue;
    if (is_reason) absl::ConsumePrefix(&value, "ERROR_REASON_");
    values.emplace_back(value);
    const std::string comment = CommentOf(*type.value(i));
    if (comment.empty()) continue;
    absl::StrAppend(&description, description.empty() ? "" : "\n", "\n- `", value, "`: ", comment);
  }
  schemas_[name] = With(JsonObject({{"type", JsonText("string")}, {"enum", TextArray(values)}}),
                        "description", JsonText(absl::StripLeadingAsciiWhitespace(description)));
  return Ref(name);
}

JsonMembers Schemas::Properties(const Descriptor& message, Form form) {
  JsonMembers properties;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    properties.emplace_back(form == Form::kDetail ? field.json_name() : field.name(),
                            Property(field, form));
  }
  return properties;
}

std::string Schemas::Property(const FieldDescriptor& field, Form form) {
  std::string schema;
  if (field.full_name() == "phimap.rpc.ErrorInfo.reason") {
    schema = EnumRef(*field.file()->pool()->FindEnumTypeByName("phimap.v1.ErrorReason"));
  } else if (field.is_map()) {
    schema =
        JsonObject({{"type", JsonText("object")},
                    {"additionalProperties", Value(*field.message_type()->map_value(), form)}});
  } else if (field.is_repeated()) {
    schema = JsonObject({{"type", JsonText("array")}, {"items", Value(field, form)}});
  } else {
    schema = Value(field, form);
  }
  if (field.options().deprecated()) schema = With(schema, "deprecated", "true");
  return With(schema, "description", JsonText(CommentOf(field)));
}

std::string Schemas::Value(const FieldDescriptor& field, Form form) {
  const bool read = form == Form::kRead;
  switch (field.type()) {
    case FieldDescriptor::TYPE_BOOL:
      return R"({"type":"boolean"})";
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_SINT32:
    case FieldDescriptor::TYPE_SFIXED32:
      return R"({"type":"integer","format":"int32"})";
    case FieldDescriptor::TYPE_UINT32:
    case FieldDescriptor::TYPE_FIXED32:
      return R"({"type":"integer","minimum":0,"maximum":4294967295})";
    case FieldDescriptor::TYPE_INT64:
    case FieldDescriptor::TYPE_SINT64:
    case FieldDescriptor::TYPE_SFIXED64:
      return Ref(read ? "Int64Input" : "Int64");
    case FieldDescriptor::TYPE_UINT64:
    case FieldDescriptor::TYPE_FIXED64:
      return Ref(read ? "Uint64Input" : "Uint64");
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FLOAT:
      return Ref("Double");
    case FieldDescriptor::TYPE_STRING:
      return R"({"type":"string"})";
    case FieldDescriptor::TYPE_BYTES:
      return R"({"type":"string","contentEncoding":"base64"})";
    case FieldDescriptor::TYPE_ENUM:
      return EnumRef(*field.enum_type());
    case FieldDescriptor::TYPE_GROUP:
    case FieldDescriptor::TYPE_MESSAGE:
      break;
  }
  return MessageRef(*field.message_type(), form);
}

}  // namespace phimap
