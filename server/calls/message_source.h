// The messages of a request as they arrive, within the budget of memory.
//
// A message is charged as soon as its length is known, for its bytes and as many again for what
// they parse to, before any of them is kept; what comes before there is room stays in the stream's
// window. One message is gathered ahead of those that were taken. Not thread-safe: it lives on its
// loop's thread.
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

// A message that is complete, and what is charged for it.
struct ChargedMessage {
  MessageBytes bytes;
  RequestMemory::Charge charge;
};

class MessageSource {
 public:
  // What a message that finds no room does: a call of one message is refused, a stream waits.
  enum class WithoutRoom { kRefuse, kWait };

  MessageSource(RequestMemory& memory, int64_t max_message_bytes, WithoutRoom without_room)
      : memory_(memory), reader_(max_message_bytes), without_room_(without_room) {}
  ~MessageSource() { CountWaiting(0); }
  MessageSource(const MessageSource&) = delete;
  MessageSource& operator=(const MessageSource&) = delete;

  // Bytes of the body, or none, to go on after Next or when there may be room.
  void Take(Stream& stream, absl::string_view bytes);
  // Nothing follows.
  void End();

  // The oldest message that is complete.
  std::optional<ChargedMessage> Next();
  bool has_message() const { return ready_.has_value(); }
  // Why no message follows those that are complete: UNIMPLEMENTED (COMPRESSED), RESOURCE_EXHAUSTED
  // (MESSAGE_TOO_LARGE, MEMORY_FULL, OUT_OF_MEMORY), INVALID_ARGUMENT (CUT_OFF). OK while one may.
  const absl::Status& error() const { return error_; }
  // No message follows those that Next gave.
  bool at_end() const {
    return ended_ && !ready_.has_value() && pending_.empty() && reader_.at_boundary();
  }
  // A message is charged, and not all of it has come.
  bool holds_half() const { return charge_.has_value(); }
  // Of the body, by now.
  int64_t taken_bytes() const { return taken_bytes_; }
  // What the call holds of the budget itself, for the message before: beside that alone, the next
  // is let in whatever it takes.
  void SetHeld(int64_t bytes) { held_bytes_ = bytes; }
  // Messages that are complete.
  int64_t messages() const { return messages_; }
  // A message waits for the budget.
  bool waits_for_room() const { return waits_; }

 private:
  // Charges the message whose prefix is there; false when it must wait.
  bool Admit(Stream& stream);
  // Gathers from `bytes`, which lose what was taken; returns how many those were.
  size_t Gather(Stream& stream, absl::string_view& bytes);
  // Keeps what could not be taken, within what the memory allows for that.
  void Keep(Stream& stream, absl::string_view bytes);
  bool CountWaiting(size_t bytes);
  void NoteEnd();

  RequestMemory& memory_;
  MessageReader reader_;
  const WithoutRoom without_room_;
  // Came, and could not be taken yet; still in the stream's window.
  std::string pending_;
  // For it: of the budget, or, while a message waits for that, beside it.
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
