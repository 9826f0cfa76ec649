// Reads the messages of a request as they arrive, within the memory budget.
//
// When a message's length is known, and before any of its bytes is kept, the message is charged for
// its bytes and for the same amount again for the parsed message. Bytes that arrive before there is
// capacity stay in the stream's window. One message is read ahead of the one being processed. Not
// thread-safe: used on the loop's thread only.
#ifndef PHIMAP_SERVER_RPC_MESSAGE_SOURCE_H_
#define PHIMAP_SERVER_RPC_MESSAGE_SOURCE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/admission/caller_shares.h"
#include "server/admission/request_memory.h"
#include "server/rpc/framed_message.h"
#include "server/rpc/transport/stream.h"

namespace phimap {

// A complete message and its charge, which is returned after the bytes are freed.
struct ChargedMessage {
  RequestMemory::Charge charge;
  MessageBytes bytes;
};

class MessageSource {
 public:
  // Reaction to a lack of capacity for a message: a call with a single request message is refused,
  // a stream waits.
  enum class WithoutCapacity { kRefuse, kWait };

  // `granted` returns what is called when a stream that waits has got its memory, on any thread and
  // perhaps after this source is gone. TakeGranted must then be called with that charge.
  MessageSource(RequestMemory& memory, CallerPointer caller, int64_t max_message_bytes,
                WithoutCapacity without_capacity, std::function<RequestMemory::Granted()> granted)
      : memory_(memory),
        caller_(std::move(caller)),
        without_capacity_(without_capacity),
        granted_(std::move(granted)),
        reader_(max_message_bytes) {}
  ~MessageSource() { CountWaiting(0); }
  MessageSource(const MessageSource&) = delete;
  MessageSource& operator=(const MessageSource&) = delete;

  // Takes bytes of the body. Called with empty `bytes` to continue after Next.
  void Take(Stream& stream, absl::string_view bytes);
  // Takes the charge that was granted, and continues.
  void TakeGranted(Stream& stream, RequestMemory::Charge charge);
  // Gives up everything, because the call is over: no more bytes are taken.
  void Drop();
  // Marks the end of the stream: no more messages follow.
  void End();

  // Returns the oldest complete message, if any.
  std::optional<ChargedMessage> Next();
  bool has_message() const { return ready_.has_value(); }
  // About the message that Next would return: whether bytes of another one follow, and whether it
  // is known to be the last.
  bool has_more() const { return !pending_.empty(); }
  bool is_last() const { return ended_ && pending_.empty() && reader_.at_boundary(); }
  // Reason why no message follows the complete ones: INTERNAL (ENCODING_MISSING),
  // RESOURCE_EXHAUSTED (MESSAGE_TOO_LARGE, REQUEST_MEMORY_FULL, MACHINE_MEMORY_FULL),
  // INVALID_ARGUMENT (REQUEST_TRUNCATED). OK while another message may follow.
  const absl::Status& error() const { return error_; }
  // Whether Next has returned the last message.
  bool at_end() const {
    return ended_ && !ready_.has_value() && pending_.empty() && reader_.at_boundary();
  }
  // Whether a message is charged but incomplete.
  bool holds_half() const { return charge_.has_value(); }
  // Bytes that this message is charged for. REQUIRES: holds_half().
  int64_t half_bytes() const { return charge_->bytes(); }
  // Bytes of the body taken so far.
  int64_t taken_bytes() const { return taken_bytes_; }
  // Sets the size of the charge that the call holds for the previous message. If that is the only
  // charge on the budget, the next message is admitted whatever its size.
  void SetHeld(int64_t bytes) {
    held_bytes_ = bytes;
    if (waited_held_ != nullptr) waited_held_->store(bytes);
  }
  // Number of messages that have been completed so far.
  int64_t messages() const { return messages_; }
  // Whether a message waits for the memory budget.
  bool waits_for_memory() const { return waits_; }

 private:
  // Charges the message whose prefix has arrived. Returns false if the message must wait.
  bool Admit(Stream& stream);
  // Waits for memory, unless there is some now, which is returned.
  std::optional<RequestMemory::Charge> Wait(int64_t bytes);
  // Lets the client send the message whose prefix has arrived.
  void Widen(Stream& stream);
  void DropHalf();
  // Reads from the front of `bytes`, which it shortens. Returns the number of bytes read.
  size_t Gather(Stream& stream, absl::string_view& bytes);
  // Keeps bytes that Gather left over in `pending_`, and accounts for their memory. Sets `error_`
  // if too many bytes are kept.
  void Keep(Stream& stream, absl::string_view bytes);
  bool CountWaiting(size_t bytes);
  void NoteEnd();

  // Charges are declared before the memory that they are for, so that they are returned after it.
  RequestMemory& memory_;
  const CallerPointer caller_;
  const WithoutCapacity without_capacity_;
  const std::function<RequestMemory::Granted()> granted_;
  RequestMemory::Waiting waiting_;
  // What SetHeld has set, for the thread that grants memory. Null until the stream first waits.
  std::shared_ptr<std::atomic<int64_t>> waited_held_;
  // Charge for `pending_`. While a message waits for the budget, `pending_` is counted outside the
  // budget instead.
  RequestMemory::Charge pending_charge_;
  // Bytes that have arrived but could not be taken yet; they still count against the stream's
  // window.
  std::string pending_;
  int64_t waiting_bytes_ = 0;
  std::optional<RequestMemory::Charge> charge_;
  MessageReader reader_;
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

#endif  // PHIMAP_SERVER_RPC_MESSAGE_SOURCE_H_
