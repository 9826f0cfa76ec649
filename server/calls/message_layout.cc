#include "server/calls/message_layout.h"

#include <iterator>
#include <utility>

#include "core/status/check.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/message.h"
#include "google/protobuf/wire_format_lite.h"

namespace phimap {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Kind = FieldLayout::Kind;

constexpr int64_t kPointerBytes = sizeof(void*);
// Memory per pointer of an array that doubles as it grows. The array has up to twice the capacity
// that it needs. While its elements move, the old array, which is half as large, exists as well.
// The eighth is for pages that are not full.
constexpr int64_t kGrownPointerBytes = 3 * kPointerBytes + kPointerBytes / 8;
// Minimum size of an array, even if it has few elements.
constexpr int64_t kFirstArrayBytes = HeapBytes(7 * kPointerBytes);
// Memory of a map entry besides its node: pointers of the hash table, which grows like an array and
// is at least three eighths full, and a node of a tree that holds entries with colliding keys.
constexpr int64_t kMapSlotBytes = 4 * kPointerBytes + HeapBytes(6 * kPointerBytes);
constexpr int64_t kFirstTableBytes = HeapBytes(8 * kPointerBytes);

// Returns an upper bound on the size of a message with maps. The bound is computed from the type: a
// build for ThreadSanitizer must not create such a message, because protobuf's headers then give
// maps another layout than protobuf's library.
int64_t SizeWithMaps(const Descriptor& type) {
  constexpr int64_t kOwnBytes = 4 * kPointerBytes;  // virtual functions, metadata, sizes, bits
  constexpr int64_t kMapBytes = 128;
  int64_t bytes = kOwnBytes;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    bytes += field.is_map() ? kMapBytes : (field.is_repeated() ? 3 : 1) * kPointerBytes;
  }
  return bytes;
}

int64_t SizeOf(const Descriptor& type) {
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->is_map()) return SizeWithMaps(type);
  }
  const google::protobuf::Message* const prototype =
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type);
  PHIMAP_CHECK(prototype != nullptr);
  return static_cast<int64_t>(prototype->SpaceUsedLong());
}

// Returns the size of a key or value in a node of a map. The node contains the value itself, even
// if it is a string or a message.
int64_t SizeInMap(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return sizeof(std::string);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return SizeOf(*field.message_type());
    case FieldDescriptor::CPPTYPE_BOOL:
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_ENUM:
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      break;
  }
  return sizeof(int64_t);
}

uint8_t ElementBytes(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return sizeof(bool);
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_ENUM:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return sizeof(int32_t);
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_STRING:
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return sizeof(int64_t);
}

void SetString(const FieldDescriptor& field, FieldLayout& layout) {
  layout.kind = Kind::kString;
  if (!field.containing_type()->options().map_entry()) {
    layout.bytes = kStringObjectBytes + (field.is_repeated() ? kGrownPointerBytes : 0);
  } else if (field.number() == 1) {
    layout.kind = Kind::kMapKey;
  }
}

}  // namespace

const FieldLayout& TypeLayout::Find(uint32_t number) const {
  static const FieldLayout* const kUnknown = new FieldLayout();
  if (number < fields.size()) return fields[number];
  const auto found = far_fields.find(static_cast<int>(number));
  return found == far_fields.end() ? *kUnknown : found->second;
}

MessageLayout::MessageLayout(const Descriptor& type)
    : name_(type.full_name()), bytes_(HeapBytes(SizeOf(type))) {
  Add(type);
}

int32_t MessageLayout::Add(const Descriptor& type) {
  const auto [known, added] = known_.emplace(&type, static_cast<int32_t>(types_.size()));
  if (!added) return known->second;
  PHIMAP_CHECK(type.file()->syntax() == google::protobuf::FileDescriptor::SYNTAX_PROTO3);
  const int32_t index = known->second;
  types_.emplace_back();  // before the types of the fields, which may contain this type
  TypeLayout layout;
  for (int i = 0; i < type.field_count(); ++i) {
    const int number = type.field(i)->number();
    const FieldLayout field = FieldOf(*type.field(i));
    if (number > static_cast<int>(TypeLayout::kMaxNear)) {
      layout.far_fields[number] = field;
      continue;
    }
    if (number >= std::ssize(layout.fields)) layout.fields.resize(number + 1);
    layout.fields[number] = field;
  }
  types_[index] = std::move(layout);
  return index;
}

FieldLayout MessageLayout::FieldOf(const FieldDescriptor& field) {
  using google::protobuf::internal::WireFormatLite;
  FieldLayout layout;
  layout.repeated = field.is_repeated();
  layout.wire_type = static_cast<uint8_t>(
      WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field.type())));
  if (field.is_repeated()) layout.first_bytes = kFirstArrayBytes;
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    SetString(field, layout);
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    SetMessage(field, layout);
  } else if (!field.is_repeated()) {
    layout.kind = Kind::kScalar;
  } else {
    layout.element_bytes = ElementBytes(field);
    layout.kind = layout.wire_type == WireFormatLite::WIRETYPE_VARINT ? Kind::kRepeatedVarint
                                                                      : Kind::kRepeatedFixed;
  }
  return layout;
}

void MessageLayout::SetMessage(const FieldDescriptor& field, FieldLayout& layout) {
  layout.kind = Kind::kMessage;
  layout.map_entry = field.is_map();
  layout.type = Add(*field.message_type());
  const bool within_map = field.containing_type()->options().map_entry();
  if (field.is_map()) {
    const int64_t node = SizeInMap(*field.message_type()->map_key()) +
                         SizeInMap(*field.message_type()->map_value()) + kPointerBytes;
    layout.bytes = HeapBytes(node) + kMapSlotBytes;
    // A map entry whose fields are in an unusual order is first parsed into a message of its own.
    layout.first_bytes = kFirstTableBytes + 2 * HeapBytes(node) + 2 * kStringObjectBytes;
  } else if (!within_map) {
    layout.bytes = HeapBytes(SizeOf(*field.message_type()));
    if (field.is_repeated()) layout.bytes += kGrownPointerBytes;
  }
}

}  // namespace phimap
