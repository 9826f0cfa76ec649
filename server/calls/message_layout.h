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

// Bytes that malloc of glibc, and so operator new, takes for `bytes`: a word for itself, rounded up
// to 16 bytes; whole pages for large blocks.
constexpr int64_t HeapBytes(int64_t bytes) {
  constexpr int64_t kMappedBytes = 128 << 10;
  if (bytes >= kMappedBytes) return (bytes + 16 + 4095) / 4096 * 4096;
  return bytes <= 24 ? 32 : (bytes + 8 + 15) / 16 * 16;
}

// A std::string by itself.
inline constexpr int64_t kStringObjectBytes = HeapBytes(sizeof(std::string));

// One field of a message type, as the walk over a message's bytes needs it.
struct FieldLayout {
  enum class Kind : uint8_t {
    kUnknown,
    kScalar,          // within the message
    kString,          // string or bytes
    kMessage,         // or an entry of a map, if `repeated`
    kRepeatedVarint,  // packed or not
    kRepeatedFixed,   // packed or not
    kMapKey,          // a string, of which a parse holds three copies for a moment
  };

  Kind kind = Kind::kUnknown;
  uint8_t wire_type = 0;      // of one element
  uint8_t element_bytes = 0;  // in memory; of repeated numbers
  bool repeated = false;
  bool map_entry = false;
  int32_t type = -1;  // of a sub-message, its place in MessageLayout::types()
  // Bytes that the field allocates without its contents; for a repeated field, for each element.
  int64_t bytes = 0;
  // Allocated besides by the first element of a message.
  int64_t first_bytes = 0;
};

// The fields of one message type.
struct TypeLayout {
  // Keyed by field number; numbers that are absent are unknown fields. The numbers of the APIs are
  // small.
  std::vector<FieldLayout> fields;
  std::map<int, FieldLayout> far_fields;  // of numbers over kMaxNear

  static constexpr uint32_t kMaxNear = 255;
  const FieldLayout& Find(uint32_t number) const;
};

// The layouts of a type and of all that it may hold. Immutable, hence thread-safe.
class MessageLayout {
 public:
  // REQUIRES: generated code for `type`, and proto3: no groups, no extensions, no closed enums.
  explicit MessageLayout(const google::protobuf::Descriptor& type);

  // The type itself is the first.
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
