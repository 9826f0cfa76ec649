// gRPC's framing: five bytes (a flag for compression, the length big-endian), then the message.
#ifndef PHIMAP_SERVER_CALLS_MESSAGE_READER_H_
#define PHIMAP_SERVER_CALLS_MESSAGE_READER_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "absl/strings/string_view.h"

namespace phimap {

// The bytes of one message. Their memory is malloc's.
struct MessageBytes {
  struct Free {
    void operator()(char* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<char, Free> data;  // null if the message is empty
  size_t size = 0;

  absl::string_view view() const { return {data.get(), size}; }
};

// Puts messages together from the chunks of a stream, however these cut them: a chunk may end
// within a prefix, and may hold several messages. The caller decides between prefix and body
// whether the message may be read at all, so nothing is allocated before that.
//
// A declared length costs nothing: the buffer is never larger than the message, nor, until the
// whole message is there, than 64 KiB or twice the bytes that arrived, whichever is more. (While
// realloc moves a buffer of less than malloc's mmap threshold, the old one exists beside it for a
// moment.)
//
// Example, for each chunk of a stream:
//   while (!chunk.empty()) {
//     chunk.remove_prefix(reader.TakePrefix(chunk));
//     if (!reader.has_prefix()) break;
//     if (reader.too_long() || reader.compressed()) return Refuse();
//     chunk.remove_prefix(reader.TakeBody(chunk));
//     if (reader.complete()) Handle(reader.Release());
//   }
// At the end of the stream at_boundary() is true if the last message was whole.
//
// Not thread-safe.
class MessageReader {
 public:
  static constexpr size_t kPrefixBytes = 5;

  explicit MessageReader(int64_t max_message_bytes) : max_message_bytes_(max_message_bytes) {}

  // Consumes the missing bytes of the prefix and returns their number: 0 if it is already complete.
  size_t TakePrefix(absl::string_view bytes);
  bool has_prefix() const { return prefix_size_ == kPrefixBytes; }

  // Refers to the message whose prefix is there. REQUIRES: has_prefix().
  bool compressed() const { return prefix_[0] != 0; }
  uint32_t length() const;
  bool too_long() const { return length() > max_message_bytes_; }
  int64_t max_message_bytes() const { return max_message_bytes_; }

  // Consumes the missing bytes of the message and returns their number. Throws std::bad_alloc if
  // there is no memory for them, and is then unchanged. REQUIRES: has_prefix(), !too_long().
  size_t TakeBody(absl::string_view bytes);
  // An empty message is complete with its prefix.
  // Bytes of the message that have yet to come. REQUIRES: has_prefix().
  size_t missing() const { return length() - size_; }
  bool complete() const { return has_prefix() && size_ == length(); }

  // The message; the next prefix follows. REQUIRES: complete().
  MessageBytes Release();

  // Whether nothing of a next message was taken.
  bool at_boundary() const { return prefix_size_ == 0; }
  // The size of the buffer.
  size_t capacity() const { return capacity_; }

 private:
  void Reserve(size_t needed);

  const int64_t max_message_bytes_;
  unsigned char prefix_[kPrefixBytes] = {};
  size_t prefix_size_ = 0;
  std::unique_ptr<char, MessageBytes::Free> data_;
  size_t size_ = 0;      // bytes of the message that are there
  size_t capacity_ = 0;  // bytes of data_
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_MESSAGE_READER_H_
