#include "server/http/plain_json.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "server/http/json_values.h"

namespace phimap {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// A field of a message, or an entry of a repeated one.
class Value {
 public:
  Value(const Message& message, const FieldDescriptor& field, int index)
      : message_(message), reflection_(*message.GetReflection()), field_(field), index_(index) {}

  void Append(std::string& text) const {
    switch (field_.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return absl::StrAppend(&text, Get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32));
      case FieldDescriptor::CPPTYPE_INT64:
        return absl::StrAppend(&text, Get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64));
      case FieldDescriptor::CPPTYPE_UINT32:
        return absl::StrAppend(&text, Get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32));
      case FieldDescriptor::CPPTYPE_UINT64:
        return absl::StrAppend(&text, Get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return AppendNumber(Get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble), text);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return AppendNumber(Get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat), text);
      case FieldDescriptor::CPPTYPE_BOOL:
        text.append(Get(&Reflection::GetBool, &Reflection::GetRepeatedBool) ? "true" : "false");
        return;
      case FieldDescriptor::CPPTYPE_ENUM:
        return AppendString(Get(&Reflection::GetEnum, &Reflection::GetRepeatedEnum)->name(), text);
      case FieldDescriptor::CPPTYPE_STRING:
        return AppendString(Get(&Reflection::GetString, &Reflection::GetRepeatedString), text);
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return AppendPlainJson(index_ < 0
                                   ? reflection_.GetMessage(message_, &field_)
                                   : reflection_.GetRepeatedMessage(message_, &field_, index_),
                               text);
    }
  }

 private:
  template <typename T>
  T Get(T (Reflection::*single)(const Message&, const FieldDescriptor*) const,
        T (Reflection::*repeated)(const Message&, const FieldDescriptor*, int) const) const {
    return index_ < 0 ? (reflection_.*single)(message_, &field_)
                      : (reflection_.*repeated)(message_, &field_, index_);
  }

  const Message& message_;
  const Reflection& reflection_;
  const FieldDescriptor& field_;
  // -1 if the field is not repeated.
  const int index_;
};

void AppendEntries(const Message& message, const FieldDescriptor& field, std::string& text) {
  const Reflection& reflection = *message.GetReflection();
  text.push_back(field.is_map() ? '{' : '[');
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    if (i > 0) text.push_back(',');
    if (field.is_map()) {
      const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
      Value(entry, *field.message_type()->map_key(), -1).Append(text);
      text.push_back(':');
      Value(entry, *field.message_type()->map_value(), -1).Append(text);
    } else {
      Value(message, field, i).Append(text);
    }
  }
  text.push_back(field.is_map() ? '}' : ']');
}

bool IsLeftOut(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  if (field.is_map()) return reflection.FieldSize(message, &field) == 0;
  return !field.is_repeated() && field.has_presence() && !reflection.HasField(message, &field);
}

}  // namespace

void AppendPlainJson(const Message& message, std::string& text) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  char before = '{';
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (IsLeftOut(message, field)) continue;
    text.push_back(before);
    before = ',';
    absl::StrAppend(&text, "\"", field.name(), "\":");
    if (field.is_repeated()) {
      AppendEntries(message, field, text);
    } else {
      Value(message, field, -1).Append(text);
    }
  }
  text.append(before == '{' ? "{}" : "}");
}

}  // namespace phimap
