// Computes the memory that a message will occupy once parsed, from its bytes.
#ifndef PHIMAP_SERVER_RPC_MESSAGE_COST_H_
#define PHIMAP_SERVER_RPC_MESSAGE_COST_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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

// Computes the memory of a parsed message before it is parsed. Two bytes on the wire may become a
// message of two hundred bytes or an integer of eight bytes. So a message is charged for the
// allocations of parsing before it is parsed. The layouts are created once for each type of
// request.
//
// Immutable, hence thread-safe.
class MessageCost {
 public:
  // REQUIRES: as for MessageLayout.
  explicit MessageCost(const google::protobuf::Descriptor& type) : layout_(type) {}

  // Returns an upper bound on the growth of the heap at any moment while `bytes`, which are one
  // contiguous array, are parsed into a new message without an arena. This includes the message
  // itself, sub-messages, strings, arrays with their spare capacity and the old array while they
  // grow, maps, and unknown fields. The bound is at most four times the final size plus a KiB,
  // unless a field that is not repeated occurs more than once.
  //
  // Errors:  INVALID_ARGUMENT (MalformedRequest) for bytes that cannot be parsed; everything that
  //          parses has a cost. Invalid UTF-8 is left to the parse.
  // Cost:    one pass; allocates nothing. Bytes of strings are skipped, so messages of one large
  //          field take some 50 ns.
  absl::StatusOr<int64_t> Of(absl::string_view bytes) const;
  // Returns the cost of bytes that have at most `max_fields` fields, of the message and all within
  // it, and nullopt if there are more. A field takes time to parse even if it adds no memory, as
  // one that is not repeated and occurs again. Stops at the field that is too many.
  std::optional<absl::StatusOr<int64_t>> OfFew(absl::string_view bytes, int64_t max_fields) const;

 private:
  const MessageLayout layout_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_MESSAGE_COST_H_
