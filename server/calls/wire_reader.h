// Reads the wire format of protocol buffers by the same rules as google::protobuf.
#ifndef PHIMAP_SERVER_CALLS_WIRE_READER_H_
#define PHIMAP_SERVER_CALLS_WIRE_READER_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace phimap {

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

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_WIRE_READER_H_
