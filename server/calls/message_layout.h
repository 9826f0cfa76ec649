// Memory that google::protobuf (3.21) allocates for the fields of a message type, by field number.
#ifndef PHIMAP_SERVER_CALLS_MESSAGE_LAYOUT_H_
#define PHIMAP_SERVER_CALLS_MESSAGE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"

namespace phimap {

// Returns the bytes that glibc's malloc, and therefore operator new, takes for a block of `bytes`:
// one more word, rounded up to 16 bytes, or whole pages for large blocks.
constexpr int64_t HeapBytes(int64_t bytes) {
  constexpr int64_t kMappedBytes = 128 << 10;
  if (bytes >= kMappedBytes) return (bytes + 16 + 4095) / 4096 * 4096;
  return bytes <= 24 ? 32 : (bytes + 8 + 15) / 16 * 16;
}

// Heap memory of a std::string object, without its text.
inline constexpr int64_t kStringObjectBytes = HeapBytes(sizeof(std::string));

// What MessageCost needs to know about one field of a message type.
struct FieldLayout {
  enum class Kind : uint8_t {
    kUnknown,
    kScalar,          // stored within the message
    kString,          // string or bytes
    kMessage,         // a sub-message; if `repeated`, perhaps an entry of a map
    kRepeatedVarint,  // packed or not
    kRepeatedFixed,   // packed or not
    kMapKey,          // a string; the parser briefly holds three copies of it
  };

  Kind kind = Kind::kUnknown;
  uint8_t wire_type = 0;      // of a value; for repeated fields, of one element
  uint8_t element_bytes = 0;  // size in memory; for repeated numbers only
  bool repeated = false;
  bool map_entry = false;
  int32_t type = -1;  // index of a sub-message's type in MessageLayout::types()
  // Bytes that the field allocates in addition to its contents; for a repeated field, per element.
  int64_t bytes = 0;
  // Bytes that the first element in a message allocates in addition to `bytes`.
  int64_t first_bytes = 0;
};

// The fields of one message type.
struct TypeLayout {
  // Indexed by field number. Numbers without a field have Kind::kUnknown. The array is short,
  // because the field numbers of the APIs are small.
  std::vector<FieldLayout> fields;
  std::map<int, FieldLayout> far_fields;  // fields whose numbers are over kMaxNear

  static constexpr uint32_t kMaxNear = 255;
  const FieldLayout& Find(uint32_t number) const;
};

// The layouts of a type and of all types that it may contain. Immutable, hence thread-safe.
class MessageLayout {
 public:
  // REQUIRES: `type` has generated code and is proto3 (no groups, no extensions, no closed enums).
  explicit MessageLayout(const google::protobuf::Descriptor& type);

  // The layouts of all types. The first layout is that of the type itself.
  const std::vector<TypeLayout>& types() const { return types_; }
  // Size of one message of the type, without its contents.
  int64_t bytes() const { return bytes_; }
  const std::string& name() const { return name_; }

 private:
  int32_t Add(const google::protobuf::Descriptor& type);
  FieldLayout FieldOf(const google::protobuf::FieldDescriptor& field);
  void SetMessage(const google::protobuf::FieldDescriptor& field, FieldLayout& layout);

  std::string name_;
  int64_t bytes_;
  std::vector<TypeLayout> types_;
  std::map<const google::protobuf::Descriptor*, int32_t> known_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_MESSAGE_LAYOUT_H_
