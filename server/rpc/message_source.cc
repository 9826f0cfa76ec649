#include "server/rpc/message_source.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// Bytes charged per message in addition to its content and its parsed form.
constexpr int64_t kPerMessage = 1024;
// Largest and smallest flow-control window of a stream. The window is widened only while a message
// is charged.
constexpr size_t kWideWindow = 1 << 20;
constexpr size_t kNarrowWindow = 32 << 10;
// If a method's limit for the size of requests is at most this, its requests are accepted even
// without capacity, so that health checks always work.
constexpr int64_t kAlwaysTaken = 4 << 10;

// A request whose header names an encoding is refused before its messages are read
// (MESSAGE_COMPRESSED). What is left is a flag without the header, for which gRPC prescribes
// INTERNAL.
absl::Status Compressed() {
  return MakeError(
      Code::kInternal, reason::kEncodingMissing, "grpc-encoding",
      "a message is marked as compressed, but the request has no header that says how; "
      "send messages uncompressed, because compressed ones are refused in any case");
}

absl::Status TooLarge(uint32_t length, int64_t limit) {
  return MakeError(
      Code::kResourceExhausted, reason::kMessageTooLarge, "",
      absl::StrCat("the message has ", length, " bytes, over the limit of ", limit,
                   limit <= kAlwaysTaken ? " of this method"
                                         : " (--max_message_bytes); send fewer rows at once"),
      {{"actual", absl::StrCat(length)}, {"limit", absl::StrCat(limit)}});
}

absl::Status OutOfMemory(uint32_t length) {
  return MakeError(Code::kResourceExhausted, reason::kMachineMemoryFull, "",
                   absl::StrCat("not enough memory for a message of ", length, " bytes"), {},
                   /*retry_delay_ms=*/1000);
}

absl::Status CutOff() {
  return MakeError(Code::kInvalidArgument, reason::kRequestTruncated, "",
                   "the request ended in the middle of a message");
}

}  // namespace

bool MessageSource::Admit(Stream& stream) {
  if (charge_.has_value()) return true;
  if (waits_) return false;
  if (reader_.compressed()) {
    error_ = Compressed();
  } else if (reader_.too_long()) {
    error_ = TooLarge(reader_.length(), reader_.max_message_bytes());
  }
  if (!error_.ok()) return false;
  const int64_t bytes = 2 * int64_t{reader_.length()} + kPerMessage;
  charge_ = reader_.max_message_bytes() <= kAlwaysTaken
                ? memory_.TakeUnconditionally(caller_, bytes)
                : memory_.Take(caller_, bytes, held_bytes_);
  if (!charge_.has_value() && without_capacity_ == WithoutCapacity::kRefuse) {
    error_ = memory_.Full(caller_, "the request", bytes);
    return false;
  }
  if (!charge_.has_value()) charge_ = Wait(bytes);
  waits_ = !charge_.has_value();
  if (!waits_) Widen(stream);
  return !waits_;
}

void MessageSource::Widen(Stream& stream) {
  if (reader_.length() <= kNarrowWindow) return;
  stream.SetWindow(std::clamp<size_t>(reader_.length(), kNarrowWindow, kWideWindow));
  wide_ = true;
}

std::optional<RequestMemory::Charge> MessageSource::Wait(int64_t bytes) {
  if (waited_held_ == nullptr) waited_held_ = std::make_shared<std::atomic<int64_t>>();
  waited_held_->store(held_bytes_);
  return memory_.TakeOrWait(caller_, bytes, waited_held_, granted_(), waiting_);
}

void MessageSource::TakeGranted(Stream& stream, RequestMemory::Charge charge) {
  // The stream may have failed since.
  if (!waits_) return;
  waits_ = false;
  waiting_ = RequestMemory::Waiting();
  charge_ = std::move(charge);
  Widen(stream);
  Take(stream, {});
}

void MessageSource::Drop() {
  waits_ = false;
  waiting_ = RequestMemory::Waiting();
  pending_.clear();
  pending_.shrink_to_fit();
  pending_charge_.Release();
  CountWaiting(0);
  DropHalf();
  ready_.reset();
}

void MessageSource::DropHalf() {
  reader_.Drop();
  charge_.reset();
}

size_t MessageSource::Gather(Stream& stream, absl::string_view& bytes) {
  const size_t before = bytes.size();
  while (!ready_.has_value() && error_.ok()) {
    bytes.remove_prefix(reader_.TakePrefix(bytes));
    if (!reader_.has_prefix() || !Admit(stream)) break;
    try {
      bytes.remove_prefix(reader_.TakeBody(bytes));
    } catch (const std::bad_alloc&) {
      error_ = OutOfMemory(reader_.length());
    }
    // Narrows the window towards the end of the message, because what follows is not charged yet.
    if (wide_ && reader_.missing() < kWideWindow) {
      stream.SetWindow(std::max(reader_.missing(), kNarrowWindow));
    }
    if (!reader_.complete()) break;
    ++messages_;
    ready_ = ChargedMessage{*std::exchange(charge_, std::nullopt), reader_.Release()};
    if (std::exchange(wide_, false)) stream.SetWindow(kNarrowWindow);
  }
  const size_t taken = before - bytes.size();
  taken_bytes_ += static_cast<int64_t>(taken);
  return taken;
}

void MessageSource::Take(Stream& stream, absl::string_view bytes) {
  std::string joined;
  pending_charge_.Release();
  if (!pending_.empty()) {
    joined = std::move(pending_);
    joined.append(bytes.data(), bytes.size());
    bytes = joined;
    pending_.clear();
  }
  const size_t consumed = Gather(stream, bytes);
  if (consumed > 0) stream.Consume(consumed);
  Keep(stream, bytes);
  NoteEnd();
}

void MessageSource::Keep(Stream& stream, absl::string_view bytes) {
  // Bytes that follow a complete message are charged to the budget if there is capacity.
  if (error_.ok() && !waits_ && !bytes.empty()) {
    std::optional<RequestMemory::Charge> charge =
        memory_.Take(caller_, static_cast<int64_t>(bytes.size()), held_bytes_);
    if (charge.has_value()) pending_charge_ = *std::move(charge);
  }
  const bool beside = waits_ || pending_charge_.bytes() == 0;
  if (error_.ok() && !CountWaiting(beside ? bytes.size() : 0)) {
    error_ = memory_.Full(caller_, "the waiting request", static_cast<int64_t>(bytes.size()));
    waits_ = false;
    waiting_ = RequestMemory::Waiting();
  }
  if (error_.ok()) {
    pending_.assign(bytes.data(), bytes.size());
    return;
  }
  // Bytes that arrive after an error are discarded.
  DropHalf();
  CountWaiting(0);
  if (!bytes.empty()) stream.Consume(bytes.size());
}

bool MessageSource::CountWaiting(size_t bytes) {
  const int64_t more = static_cast<int64_t>(bytes) - waiting_bytes_;
  if (more > 0 && !memory_.TakeWaiting(caller_, more)) return false;
  if (more < 0) memory_.ReturnWaiting(caller_, -more);
  waiting_bytes_ += more;
  return true;
}

void MessageSource::End() {
  ended_ = true;
  NoteEnd();
}

void MessageSource::NoteEnd() {
  const bool rest = !pending_.empty() || !reader_.at_boundary();
  if (!ended_ || ready_.has_value() || waits_ || !error_.ok() || !rest) return;
  error_ = CutOff();
  DropHalf();
  pending_.clear();
}

std::optional<ChargedMessage> MessageSource::Next() { return std::exchange(ready_, std::nullopt); }

}  // namespace phimap
