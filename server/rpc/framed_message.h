// A response message with gRPC's prefix, and the end of a response.
#ifndef PHIMAP_SERVER_RPC_FRAMED_MESSAGE_H_
#define PHIMAP_SERVER_RPC_FRAMED_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/admission/request_memory.h"
#include "server/observe/request_id.h"
#include "server/rpc/transport/stream.h"

namespace phimap {

// The bytes of one message, in memory that malloc allocated.
struct MessageBytes {
  struct Free {
    void operator()(char* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<char, Free> data;  // null if the message is empty
  size_t size = 0;

  absl::string_view view() const { return {data.get(), size}; }
};

// Assembles messages from the chunks of a stream. A chunk may end anywhere, even within a prefix,
// and may contain several messages. The caller decides between prefix and body whether the message
// may be read, so nothing is allocated before that decision.
//
// A declared length alone costs no memory. The buffer is never larger than the message. Until the
// whole message has arrived, it is also never larger than 64 KiB or twice the bytes that have
// arrived, whichever is more. (While realloc moves a buffer smaller than malloc's mmap threshold,
// the old buffer briefly exists in addition.)
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

  // Consumes bytes that the prefix still lacks from the front of `bytes`, and returns their number:
  // 0 if the prefix is already complete.
  size_t TakePrefix(absl::string_view bytes);
  bool has_prefix() const { return prefix_size_ == kPrefixBytes; }

  // The next functions are about the message whose prefix has arrived. REQUIRES: has_prefix().
  bool compressed() const { return prefix_[0] != 0; }
  uint32_t length() const;
  bool too_long() const { return length() > max_message_bytes_; }
  int64_t max_message_bytes() const { return max_message_bytes_; }

  // Consumes bytes that the message still lacks from the front of `bytes`, and returns their
  // number. If there is no memory for them, throws std::bad_alloc; the reader is then unchanged.
  // REQUIRES: has_prefix(), !too_long().
  size_t TakeBody(absl::string_view bytes);
  // Number of bytes of the message that have not arrived yet. REQUIRES: has_prefix().
  size_t missing() const { return length() - size_; }
  bool complete() const { return has_prefix() && size_ == length(); }

  // Returns the message. The next byte begins a new prefix. REQUIRES: complete().
  MessageBytes Release();

  // Frees what has arrived of an incomplete message. Nothing may be read afterwards.
  void Drop() {
    data_.reset();
    capacity_ = 0;
  }

  // Whether no byte of another message has been consumed, not even of its prefix.
  bool at_boundary() const { return prefix_size_ == 0; }
  // The size of the buffer.
  size_t capacity() const { return capacity_; }

 private:
  void Reserve(size_t needed);

  const int64_t max_message_bytes_;
  unsigned char prefix_[kPrefixBytes] = {};
  size_t prefix_size_ = 0;
  std::unique_ptr<char, MessageBytes::Free> data_;
  size_t size_ = 0;      // bytes of the message that have arrived
  size_t capacity_ = 0;  // bytes of data_
};

// Holds gRPC's prefix and an uninitialized buffer for a message of `size` bytes. The message's
// charge is held until the last byte has been handed to the socket.
class FramedMessage : public OutputBytes {
 public:
  // Throws std::bad_alloc.
  FramedMessage(size_t size, RequestMemory::Charge charge);

  // Destination of the message.
  char* message() { return bytes_.get() + MessageReader::kPrefixBytes; }
  size_t size() const { return size_; }

  absl::string_view bytes() const override {
    return {bytes_.get(), MessageReader::kPrefixBytes + size_};
  }

 private:
  const size_t size_;
  const std::unique_ptr<char, MessageBytes::Free> bytes_;
  const RequestMemory::Charge charge_;
};

// Returns the headers with which every response begins.
absl::Span<const Header> AnswerHeaders();

// Ends a response with `status`: sends the trailers or, if no headers were sent yet, a response
// that consists of headers only. An error carries the request's id as the metadata "x-request-id"
// and "phimap-request-id"; the log contains the same id. An OK carries it if it is the caller's.
// `revision`, unless empty, is added to a response that is OK.
void SendStatus(Stream& stream, const absl::Status& status, bool headers_sent,
                const RequestId& request_id, absl::string_view revision = {});

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_FRAMED_MESSAGE_H_
