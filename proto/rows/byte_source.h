// Bytes that are read once, in order: a file of a client, or a body that a server has received.
#ifndef PHIMAP_PROTO_ROWS_BYTE_SOURCE_H_
#define PHIMAP_PROTO_ROWS_BYTE_SOURCE_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // For messages: a path, "standard input" or "the body".
  virtual const std::string& name() const = 0;
  // Reads 1..capacity bytes into `buffer` and returns how many; 0 at the end.
  virtual absl::StatusOr<size_t> Read(char* buffer, size_t capacity) = 0;
};

// Bytes in memory, which must outlive the source.
class MemorySource final : public ByteSource {
 public:
  MemorySource(absl::string_view bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  const std::string& name() const override { return name_; }
  absl::StatusOr<size_t> Read(char* buffer, size_t capacity) override {
    const size_t size = bytes_.copy(buffer, capacity);
    bytes_.remove_prefix(size);
    return size;
  }

 private:
  absl::string_view bytes_;
  const std::string name_;
};

}  // namespace phimap

#endif  // PHIMAP_PROTO_ROWS_BYTE_SOURCE_H_
