// The messages of a request as they arrive, within the budget of memory.
//
// A message is charged as soon as its length is known, for its bytes and as much again for the
// parsed message, before any of them is kept; bytes that arrive before there is capacity stay in
// the stream's window. One message is gathered ahead of the one being processed. Not thread-safe:
// it lives on its loop's thread.
#ifndef PHIMAP_SERVER_CALLS_MESSAGE_SOURCE_H_
#define PHIMAP_SERVER_CALLS_MESSAGE_SOURCE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/calls/message_reader.h"
#include "server/memory/request_memory.h"
#include "server/transport/stream.h"

namespace phimap {

// A complete message and its charge.
struct ChargedMessage {
  MessageBytes bytes;
  RequestMemory::Charge charge;
};

class MessageSource {
 public:
  // Action when there is no capacity for a message: a call of one message is refused, a stream
  // waits.
  enum class WithoutCapacity { kRefuse, kWait };

  MessageSource(RequestMemory& memory, int64_t max_message_bytes, WithoutCapacity without_capacity)
      : memory_(memory), reader_(max_message_bytes), without_capacity_(without_capacity) {}
  ~MessageSource() { CountWaiting(0); }
  MessageSource(const MessageSource&) = delete;
  MessageSource& operator=(const MessageSource&) = delete;

  // Bytes of the body, or none, to continue after Next or when there may be capacity.
  void Take(Stream& stream, absl::string_view bytes);
  // Marks the end of the stream: no more messages follow.
  void End();

  // The oldest message that is complete.
  std::optional<ChargedMessage> Next();
  bool has_message() const { return ready_.has_value(); }
  // Reason why no message follows the complete ones: UNIMPLEMENTED (MESSAGE_COMPRESSED),
  // RESOURCE_EXHAUSTED (MESSAGE_TOO_LARGE, REQUEST_MEMORY_FULL, MACHINE_MEMORY_FULL),
  // INVALID_ARGUMENT (REQUEST_TRUNCATED). OK while one may.
  const absl::Status& error() const { return error_; }
  // Whether Next has given the last message.
  bool at_end() const {
    return ended_ && !ready_.has_value() && pending_.empty() && reader_.at_boundary();
  }
  // Whether a message is charged but incomplete.
  bool holds_half() const { return charge_.has_value(); }
  // Bytes of the body taken so far.
  int64_t taken_bytes() const { return taken_bytes_; }
  // Sets the charge that the call holds for the previous message; if there is no other charge, the
  // next message is admitted whatever its size.
  void SetHeld(int64_t bytes) { held_bytes_ = bytes; }
  // Messages that are complete.
  int64_t messages() const { return messages_; }
  // A message waits for the budget.
  bool waits_for_memory() const { return waits_; }

 private:
  // Charges the message whose prefix is there; false when it must wait.
  bool Admit(Stream& stream);
  // Gathers from the front of `bytes`, which it removes; returns their number.
  size_t Gather(Stream& stream, absl::string_view& bytes);
  // Keeps bytes that could not be gathered, within the memory budget for them.
  void Keep(Stream& stream, absl::string_view bytes);
  bool CountWaiting(size_t bytes);
  void NoteEnd();

  RequestMemory& memory_;
  MessageReader reader_;
  const WithoutCapacity without_capacity_;
  // Came, and could not be taken yet; still in the stream's window.
  std::string pending_;
  // Memory of `pending_`. Charged to the budget or, while the message waits for the budget, beside
  // it.
  RequestMemory::Charge pending_charge_;
  int64_t waiting_bytes_ = 0;
  std::optional<RequestMemory::Charge> charge_;
  std::optional<ChargedMessage> ready_;
  absl::Status error_;
  int64_t taken_bytes_ = 0;
  int64_t messages_ = 0;
  int64_t held_bytes_ = 0;
  bool waits_ = false;
  bool ended_ = false;
  bool wide_ = false;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_MESSAGE_SOURCE_H_
