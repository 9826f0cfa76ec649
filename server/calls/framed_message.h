// A response message with gRPC's prefix, and the end of a response.
#ifndef PHIMAP_SERVER_CALLS_FRAMED_MESSAGE_H_
#define PHIMAP_SERVER_CALLS_FRAMED_MESSAGE_H_

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/calls/message_reader.h"
#include "server/memory/request_memory.h"
#include "server/observe/request_id.h"
#include "server/transport/stream.h"

namespace phimap {

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
// that consists of headers only. An error carries the request's id as the metadata
// "phimap-request-id"; the log contains the same id. `revision`, unless empty, is added to a
// response that is OK.
void SendStatus(Stream& stream, const absl::Status& status, bool headers_sent,
                const RequestId& request_id, absl::string_view revision = {});

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_FRAMED_MESSAGE_H_
