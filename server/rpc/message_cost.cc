#include "server/rpc/message_cost.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/status/check.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/message.h"
#include "google/protobuf/wire_format_lite.h"
#include "server/rpc/call.h"

namespace phimap {

namespace {

// Reads the wire format of protocol buffers by the same rules as google::protobuf.
enum WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kLengthDelimited = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

// Reads fields from the front of a message. Each function returns false if the bytes end too early
// or are invalid; the reader must not be used afterwards.
class WireReader {
 public:
  explicit WireReader(absl::string_view bytes) : next_(bytes.data()), end_(next_ + bytes.size()) {}

  bool done() const { return next_ == end_; }

  // Reads a field's number and wire type. Of a five-byte tag, bits beyond the first 32 are dropped.
  bool TakeTag(uint32_t& number, uint8_t& wire_type) {
    uint64_t tag = 0;
    if (!TakeVarint(5, tag)) return false;
    number = static_cast<uint32_t>(tag) >> 3;
    wire_type = tag & 7;
    return number != 0;
  }

  bool SkipVarint() {
    uint64_t ignored = 0;
    return TakeVarint(10, ignored);
  }

  bool Skip(size_t bytes) {
    if (bytes > static_cast<size_t>(end_ - next_)) return false;
    next_ += bytes;
    return true;
  }

  // Reads a length and the bytes that follow it.
  bool TakeBytes(absl::string_view& bytes) {
    uint64_t length = 0;
    if (!TakeVarint(5, length) || length > static_cast<size_t>(end_ - next_)) return false;
    bytes = {next_, static_cast<size_t>(length)};
    next_ += length;
    return true;
  }

 private:
  bool TakeVarint(int max_bytes, uint64_t& value) {
    if (next_ != end_ && static_cast<uint8_t>(*next_) < 0x80) [[likely]] {
      value = static_cast<uint8_t>(*next_++);
      return true;
    }
    for (int i = 0; i < max_bytes && next_ != end_; ++i) {
      const uint8_t byte = static_cast<uint8_t>(*next_++);
      value |= uint64_t{byte & 0x7fu} << (7 * i);
      if (byte < 0x80) return true;
    }
    return false;
  }

  const char* next_;
  const char* const end_;
};

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

namespace {

using Kind = FieldLayout::Kind;

constexpr int kMaxDepth = 100;  // google::protobuf's own limit
// Size of an element of UnknownFieldSet, an array that is allocated outside the message.
constexpr int64_t kUnknownFieldBytes = 16;
constexpr int64_t kFirstUnknownBytes = HeapBytes(4 * 8) + HeapBytes(7 * 8);

// Memory of an array that grew to `bytes`: the array with its spare capacity, because it doubles
// when it grows; the old array, which exists until its elements are moved; and pages that are not
// full.
constexpr int64_t Grown(int64_t bytes) { return 3 * bytes + bytes / 8; }

// Memory that a string's text needs outside the string object. The object itself has capacity for
// 15 bytes; the first array that it allocates has capacity for 30.
constexpr int64_t TextBytes(int64_t size) {
  return size <= 15 ? 0 : HeapBytes(std::max<int64_t>(size, 30) + 1);
}

// Number of varints in `bytes`, found by counting the bytes that end one.
int64_t CountVarints(absl::string_view bytes) {
  int64_t count = 0;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    count += ((~word >> 7 & 0x0101010101010101) * 0x0101010101010101) >> 56;
  }
  for (char byte : bytes) count += static_cast<uint8_t>(byte) < 0x80;
  return count;
}

struct Occurrence {
  bool first;  // may be the first occurrence in the message that is built
  bool again;  // may be a later occurrence
};

// The fields that have occurred in a message so far. If the bytes are merged into an existing
// message, the fields of that message are unknown.
class FieldsSeen {
 public:
  explicit FieldsSeen(bool merged) : merged_(merged) {}

  Occurrence Note(uint32_t number) {
    if (merged_ || number >= 64) return {true, true};
    const uint64_t bit = uint64_t{1} << number;
    const bool again = (seen_ & bit) != 0;
    seen_ |= bit;
    return {!again, again};
  }

 private:
  const bool merged_;
  uint64_t seen_ = 0;
};

// Computes the cost in one pass over a message. Each function returns false for bytes that cannot
// be parsed.
class Walk {
 public:
  Walk(const MessageLayout& layout, int64_t max_fields)
      : types_(layout.types()), cost_(layout.bytes()), fields_left_(max_fields) {}

  bool Message(absl::string_view bytes, int32_t type, bool merged, int depth);
  // Whether Message returned false because there are too many fields.
  bool has_too_many() const { return fields_left_ < 0; }
  int64_t cost() const { return grown_ ? cost_ + Grown(exact_) - exact_ : cost_; }

 private:
  bool Known(const FieldLayout& field, uint8_t wire_type, Occurrence occurrence, int depth,
             WireReader& reader);
  bool Unknown(uint32_t number, uint8_t wire_type, int depth, WireReader& reader);
  bool Group(uint32_t number, int depth, WireReader& reader);
  bool Text(const FieldLayout& field, Occurrence occurrence, WireReader& reader);
  bool SubMessage(const FieldLayout& field, Occurrence occurrence, int depth, WireReader& reader);
  bool Varints(const FieldLayout& field, bool packed, WireReader& reader);
  bool Fixed(const FieldLayout& field, bool packed, Occurrence occurrence, WireReader& reader);

  const std::vector<TypeLayout>& types_;
  int64_t cost_;
  int64_t fields_left_;
  // Bytes of arrays of numbers that were allocated with their final length. They have no spare
  // capacity, unless one of them grows later. `grown_`: an array has grown, and it may be one of
  // these.
  int64_t exact_ = 0;
  bool grown_ = false;
};

bool SkipScalar(uint8_t wire_type, WireReader& reader) {
  if (wire_type == kVarint) return reader.SkipVarint();
  return reader.Skip(wire_type == kFixed64 ? 8 : 4);
}

// Repeated numbers may come packed or one by one, whatever the .proto file says.
bool Matches(const FieldLayout& field, uint8_t wire_type) {
  if (field.kind == Kind::kUnknown) return false;
  return wire_type == field.wire_type || (wire_type == kLengthDelimited && field.element_bytes > 0);
}

bool Walk::Message(absl::string_view bytes, int32_t type, bool merged, int depth) {
  constexpr uint32_t kUnknownFields = 0;  // no field has this number
  WireReader reader(bytes);
  FieldsSeen seen(merged);
  while (!reader.done()) {
    uint32_t number;
    uint8_t wire_type;
    if (--fields_left_ < 0 || !reader.TakeTag(number, wire_type)) return false;
    const FieldLayout& field = types_[type].Find(number);
    if (Matches(field, wire_type)) {
      if (!Known(field, wire_type, seen.Note(number), depth, reader)) return false;
      continue;
    }
    if (seen.Note(kUnknownFields).first) cost_ += kFirstUnknownBytes;
    if (!Unknown(number, wire_type, depth, reader)) return false;
  }
  return true;
}

bool Walk::Known(const FieldLayout& field, uint8_t wire_type, Occurrence occurrence, int depth,
                 WireReader& reader) {
  if (occurrence.first) cost_ += field.first_bytes;
  const bool packed = wire_type == kLengthDelimited;
  switch (field.kind) {
    case Kind::kString:
    case Kind::kMapKey:
      return Text(field, occurrence, reader);
    case Kind::kMessage:
      return SubMessage(field, occurrence, depth, reader);
    case Kind::kRepeatedVarint:
      return Varints(field, packed, reader);
    case Kind::kRepeatedFixed:
      return Fixed(field, packed, occurrence, reader);
    case Kind::kUnknown:
    case Kind::kScalar:
      break;
  }
  return SkipScalar(wire_type, reader);
}

bool Walk::Unknown(uint32_t number, uint8_t wire_type, int depth, WireReader& reader) {
  cost_ += Grown(kUnknownFieldBytes);
  if (wire_type == kStartGroup) return Group(number, depth, reader);
  if (wire_type == kVarint || wire_type == kFixed64 || wire_type == kFixed32) {
    return SkipScalar(wire_type, reader);
  }
  absl::string_view bytes;
  if (wire_type != kLengthDelimited || !reader.TakeBytes(bytes)) return false;
  cost_ += kStringObjectBytes + TextBytes(bytes.size());
  return true;
}

bool Walk::Group(uint32_t number, int depth, WireReader& reader) {
  if (depth == 0) return false;
  cost_ += kFirstUnknownBytes;
  while (true) {
    uint32_t inner;
    uint8_t wire_type;
    if (--fields_left_ < 0 || !reader.TakeTag(inner, wire_type)) return false;
    if (wire_type == kEndGroup) return inner == number;
    if (!Unknown(inner, wire_type, depth - 1, reader)) return false;
  }
}

bool Walk::Text(const FieldLayout& field, Occurrence occurrence, WireReader& reader) {
  absl::string_view text;
  if (!reader.TakeBytes(text)) return false;
  if (field.repeated || occurrence.first) cost_ += field.bytes;
  int copies = 1;
  if (field.kind == Kind::kMapKey) {
    copies = 3;
  } else if (!field.repeated && occurrence.again) {
    copies = 2;  // if the string held a slightly shorter text, its capacity doubles
  }
  cost_ += copies * TextBytes(text.size());
  return true;
}

bool Walk::SubMessage(const FieldLayout& field, Occurrence occurrence, int depth,
                      WireReader& reader) {
  absl::string_view bytes;
  if (depth == 0 || !reader.TakeBytes(bytes)) return false;
  if (field.repeated || occurrence.first) cost_ += field.bytes;
  // Each element of a repeated field is a new message. But an entry of a map may have the key of an
  // earlier entry, and is then merged into it.
  const bool merged = occurrence.again && (!field.repeated || field.map_entry);
  return Message(bytes, field.type, merged, depth - 1);
}

bool Walk::Varints(const FieldLayout& field, bool packed, WireReader& reader) {
  int64_t count = 1;
  if (packed) {
    absl::string_view bytes;
    if (!reader.TakeBytes(bytes)) return false;
    if (!bytes.empty() && static_cast<uint8_t>(bytes.back()) >= 0x80) return false;
    count = CountVarints(bytes);
  } else if (!reader.SkipVarint()) {
    return false;
  }
  cost_ += Grown(count * field.element_bytes) + 1;  // Grown rounds down
  return true;
}

bool Walk::Fixed(const FieldLayout& field, bool packed, Occurrence occurrence, WireReader& reader) {
  int64_t bytes = field.element_bytes;
  if (packed) {
    absl::string_view elements;
    if (!reader.TakeBytes(elements) || elements.size() % field.element_bytes != 0) return false;
    bytes = static_cast<int64_t>(elements.size());
  } else if (!reader.Skip(field.element_bytes)) {
    return false;
  }
  if (packed && !occurrence.again) {
    cost_ += bytes;
    exact_ += bytes;
  } else {
    cost_ += Grown(bytes) + 1;
    grown_ = true;
  }
  return true;
}

}  // namespace

std::optional<absl::StatusOr<int64_t>> MessageCost::OfFew(absl::string_view bytes,
                                                          int64_t max_fields) const {
  Walk walk(layout_, max_fields);
  if (walk.Message(bytes, 0, false, kMaxDepth)) return walk.cost();
  if (walk.has_too_many()) return std::nullopt;
  return MalformedRequest(layout_.name());
}

absl::StatusOr<int64_t> MessageCost::Of(absl::string_view bytes) const {
  return *OfFew(bytes, std::numeric_limits<int64_t>::max());
}

}  // namespace phimap
