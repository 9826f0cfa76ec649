#include "server/mapping/build_spec_from_proto.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/mapping/spec/mapping.h"
#include "core/mapping/spec/mapping_parameters.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace phimap {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;

absl::Status BadField(absl::string_view field, absl::string_view message) {
  return MakeError(absl::StatusCode::kInvalidArgument, "FIELD_INVALID", field, message);
}

// Adds a field to an error of a parser that names none, because a parser does not know from which
// field its text came.
absl::Status InField(absl::string_view field, const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value() || !detail->field.empty()) return status;
  return MakeError(status.code(), detail->reason, field, status.message(), detail->metadata);
}

// Returns the prefix of an enum type's values in lower case: "serving_type_" for "ServingType".
std::string PrefixOf(absl::string_view type) {
  std::string prefix;
  for (const char c : type) {
    if (absl::ascii_isupper(c) && !prefix.empty()) prefix.push_back('_');
    prefix.push_back(absl::ascii_tolower(c));
  }
  return prefix + "_";
}

// Returns the word that a spec's text uses for an enum value: "f2" for F2, "float32" for
// SERVING_TYPE_FLOAT32.
std::string WordOf(const EnumValueDescriptor& value) {
  const std::string name = absl::AsciiStrToLower(value.name());
  return std::string(absl::StripPrefix(name, PrefixOf(value.type()->name())));
}

absl::StatusOr<ParameterValue> ValueOf(const v1::MappingSpec& fields,
                                       const FieldDescriptor& field) {
  const google::protobuf::Reflection& reflection = *fields.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return ParameterValue(int64_t{reflection.GetInt32(fields, &field)});
    case FieldDescriptor::CPPTYPE_INT64:
      return ParameterValue(int64_t{reflection.GetInt64(fields, &field)});
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return ParameterValue(reflection.GetDouble(fields, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return ParameterValue(reflection.GetBool(fields, &field));
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = reflection.GetEnumValue(fields, &field);
      const EnumValueDescriptor* value = field.enum_type()->FindValueByNumber(number);
      if (value == nullptr) return BadField(field.name(), absl::StrCat("unknown value ", number));
      return ParameterValue(WordOf(*value));
    }
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_STRING:
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  PHIMAP_CHECK(false);  // no parameter has this type
}

absl::StatusOr<const Mapping*> KindOf(const v1::MappingSpec& fields) {
  const EnumValueDescriptor* value =
      v1::MappingSpec::Kind_descriptor()->FindValueByNumber(fields.kind());
  const Mapping* kind = value == nullptr ? nullptr : FindMapping(WordOf(*value));
  if (kind != nullptr) return kind;
  return BadField("kind", absl::StrCat("expected one of the kinds, or `text`; got ",
                                       static_cast<int>(fields.kind())));
}

// Rejects a parameter that does not apply even if it has its default value: a caller who sets it
// expects an effect.
absl::StatusOr<MappingSpec> FromFields(const v1::MappingSpec& fields) {
  MappingSpec spec;
  PHIMAP_ASSIGN_OR_RETURN(spec.kind, KindOf(fields));
  const google::protobuf::Descriptor& message = *v1::MappingSpec::descriptor();
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (field.number() == v1::MappingSpec::kKindFieldNumber ||
        !fields.GetReflection()->HasField(fields, &field)) {
      continue;
    }
    if (!spec.Has(field.name())) return NoSuchParameter(*spec.kind, field.name());
    PHIMAP_ASSIGN_OR_RETURN(const ParameterValue value, ValueOf(fields, field));
    FindMappingParameter(field.name())->Set(value, spec);
  }
  PHIMAP_RETURN_IF_ERROR(spec.Validate());
  return spec;
}

absl::Status CheckOnlyText(const v1::MappingSpec& spec) {
  v1::MappingSpec text_alone;
  text_alone.set_text(spec.text());
  if (spec.SerializeAsString() == text_alone.SerializeAsString()) return absl::OkStatus();
  return BadField("text", "expected either `text` or the other fields, got both");
}

// Returns a spec that passes Validate(). INVALID_ARGUMENT names the field, without a prefix
// ("landmarks"). FIELD_INVALID means that an enum has an unknown value, or that `text` came with
// other fields.
absl::StatusOr<MappingSpec> MappingSpecFromProto(const v1::MappingSpec& fields) {
  if (fields.text().empty()) return FromFields(fields);
  PHIMAP_RETURN_IF_ERROR(CheckOnlyText(fields));
  absl::StatusOr<MappingSpec> parsed = MappingSpec::Parse(fields.text());
  if (!parsed.ok()) return InField("text", parsed.status());
  return parsed;
}

// In BuildRequest, fields of v1.BuildSpec are under "spec" and fields of v1.MappingSpec under
// "spec.spec".
constexpr char kSpecPrefix[] = "spec.";
constexpr char kMappingPrefix[] = "spec.spec.";

absl::StatusOr<KernelExpression> KernelFromProto(const std::string& text, const Mapping& mapping) {
  if (text.empty() && mapping.default_kernel.empty()) {
    return BadField("kernel",
                    absl::StrCat("expected a kernel; ", mapping.name, " takes ", mapping.kernels));
  }
  absl::StatusOr<KernelExpression> parsed =
      KernelExpression::Parse(text.empty() ? mapping.default_kernel : text);
  if (!parsed.ok()) return InField("kernel", parsed.status());
  return parsed;
}

}  // namespace

absl::StatusOr<BuildSpec> BuildSpecFromProto(const v1::BuildSpec& fields) {
  BuildSpec spec;
  absl::StatusOr<MappingSpec> mapping = MappingSpecFromProto(fields.spec());
  if (!mapping.ok()) return WithFieldPrefix(mapping.status(), kMappingPrefix);
  spec.mapping = *std::move(mapping);
  absl::StatusOr<std::optional<RemoteKernel>> remote = RemoteKernel::Parse(fields.kernel());
  if (!remote.ok()) return WithFieldPrefix(InField("kernel", remote.status()), kSpecPrefix);
  spec.remote = *std::move(remote);
  if (!spec.remote.has_value()) {
    absl::StatusOr<KernelExpression> kernel = KernelFromProto(fields.kernel(), *spec.mapping.kind);
    if (!kernel.ok()) return WithFieldPrefix(kernel.status(), kSpecPrefix);
    spec.kernel = *std::move(kernel);
  }
  spec.standardize = fields.standardize();
  spec.seed = fields.seed();
  spec.column_names.assign(fields.column_names().begin(), fields.column_names().end());
  if (absl::Status valid = spec.Validate(); !valid.ok()) {
    return WithFieldPrefix(valid, kSpecPrefix);
  }
  return spec;
}

}  // namespace phimap
