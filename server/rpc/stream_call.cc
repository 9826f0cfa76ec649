#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "server/rpc/call.h"

namespace phimap {
namespace {

// Time between two looks at whether a caller's token is still in force (see also FileWatch).
constexpr absl::Duration kPrincipalChecks = absl::Milliseconds(400);

absl::Status Idle(absl::Duration limit, bool reads) {
  const std::string text = absl::FormatDuration(limit);
  return MakeError(absl::StatusCode::kDeadlineExceeded, reason::kStreamIdle, "",
                   absl::StrCat("the client ", reads ? "sent" : "read", " nothing for ", text),
                   {{"limit", text}});
}

absl::Status Slow(int64_t bytes_per_second, absl::Duration limit) {
  return MakeError(
      absl::StatusCode::kDeadlineExceeded, reason::kStreamTooSlow, "",
      absl::StrCat("the client sent so slowly that it fell ", absl::FormatDuration(limit),
                   " behind the required ", bytes_per_second,
                   " bytes per second; send larger messages, or send them sooner"),
      {{"limit", absl::StrCat(bytes_per_second)}});
}

}  // namespace

StreamCall::StreamCall(const CallStart& start, const MessageCost& request_cost,
                       google::protobuf::MessageLite& request)
    : Call(start, request_cost, MessageSource::WithoutCapacity::kWait),
      request_(request),
      idle_timer_(*this),
      principal_timer_(*this) {}

void StreamCall::OnBegin() {
  if (principal() != nullptr) {
    loop().timers().Set(principal_timer_, loop().now() + kPrincipalChecks);
  }
  Start();
}

void StreamCall::CheckPrincipal() {
  const absl::Status status = principal()->Check();
  if (!status.ok()) return Finish(status);
  loop().timers().Set(principal_timer_, loop().now() + kPrincipalChecks);
}

void StreamCall::ReadNext() {
  PHIMAP_CHECK(!reading_);
  if (over() || finishing()) return;
  reading_ = true;
  // The handler is done with the previous message. If calls kept their charges while they wait for
  // capacity, they could wait for each other forever.
  source().SetHeld(0);
  has_large_request() ? DropRequest(std::move(charge_)) : charge_.Release();
  Touch();
  Pull();
  Deliver();
}

void StreamCall::OnRequestProgress() {
  if (Waits() && !writing_)
    waited_ += std::max(loop().now() - waiting_since_, absl::ZeroDuration());
  Touch();
  Deliver();
}

// If the handler asks for the next message within OnRequest, this loop delivers it, so there is no
// recursion.
void StreamCall::Deliver() {
  if (std::exchange(delivering_, true)) return;
  const std::shared_ptr<Call> self = shared_from_this();
  while (reading_ && !parsing_ && !over() && !finishing()) {
    std::optional<ChargedMessage> message = source().Next();
    if (message.has_value()) {
      if (!KeepsPace(message->bytes.size)) {
        Finish(Slow(slowest_bytes_per_second_, idle_limit_));
        break;
      }
      parsing_ = true;
      Parse(*std::move(message), request_,
            [this](const absl::Status& status, RequestMemory::Charge charge) {
              parsing_ = false;
              if (finishing()) return;
              reading_ = false;
              if (!status.ok()) return OnBadRequest(status);
              charge_ = std::move(charge);
              source().SetHeld(charge_.bytes());
              NoteNames(NamesInRequest());
              OnRequest();
              Deliver();
            });
      // Reads the next message ahead while the handler works on this one.
      if (!over()) Pull();
    } else if (!source().error().ok()) {
      reading_ = false;
      OnBadRequest(source().error());
    } else if (source().at_end() && !std::exchange(ended_told_, true)) {
      reading_ = false;
      OnRequestsEnd();
    } else {
      break;
    }
  }
  delivering_ = false;
}

void StreamCall::Write(const google::protobuf::MessageLite& response) {
  absl::StatusOr<std::shared_ptr<const OutputBytes>> framed = Frame(response);
  if (!framed.ok()) return Finish(framed.status());
  Write(*std::move(framed));
}

void StreamCall::Write(std::shared_ptr<const OutputBytes> framed) {
  PHIMAP_CHECK(!writing_);
  if (over() || finishing()) return;
  writing_ = true;
  Touch();
  Send(std::move(framed));
}

void StreamCall::OnAnswersSent() {
  writing_ = false;
  if (finish_.has_value()) return Call::Finish(*finish_);
  OnWritten();
  // Only now is the answer sent. If the handler is no longer busy, the call begins to wait for its
  // client.
  Touch();
}

void StreamCall::Finish(const absl::Status& status) {
  if (over() || finishing()) return;
  finish_ = status;
  // The request and its charge stay: other threads may still read it, such as those that add the
  // rows of a build that another call has cancelled.
  //
  // An error ends the call at once. It does not wait for the answer in progress, which the client
  // may never read.
  if (!writing_ || !status.ok()) Call::Finish(status);
}

void StreamCall::SetIdleLimit(absl::Duration limit) {
  idle_limit_ = limit;
  Touch();
}

void StreamCall::SetPace(int64_t bytes_per_second) {
  slowest_bytes_per_second_ = bytes_per_second;
  patience_ = idle_limit_;
}

bool StreamCall::KeepsPace(int64_t bytes) {
  const absl::Duration waited = std::exchange(waited_, absl::ZeroDuration());
  if (slowest_bytes_per_second_ == 0) return true;
  const absl::Duration due = absl::Seconds(static_cast<double>(bytes) / slowest_bytes_per_second_);
  // Input that arrives early does not increase the patience beyond the limit.
  patience_ = std::min(patience_ - waited + due, idle_limit_);
  return patience_ >= absl::ZeroDuration();
}

bool StreamCall::Waits() const {
  return writing_ || (reading_ && !busy() && !parsing_ && !source().waits_for_memory());
}

absl::Time StreamCall::waits_since() const {
  const bool limited = idle_limit_ != absl::InfiniteDuration();
  return limited && Waits() ? waiting_since_ : absl::InfiniteFuture();
}

void StreamCall::Touch() {
  if (over()) return;
  waiting_since_ = Waits() ? loop().now() : absl::InfiniteFuture();
  if (idle_limit_ == absl::InfiniteDuration()) return;
  // The timer is not moved for each message, because that would cost more. Instead, it checks how
  // long the client was idle when it fires.
  if (Waits() && !idle_timer_.is_set()) {
    loop().timers().Set(idle_timer_, loop().now() + idle_limit_);
  }
}

void StreamCall::OnIdle() {
  if (over() || !Waits()) return;
  // The call begins to wait for the client now, even if the client has sent nothing.
  if (waiting_since_ == absl::InfiniteFuture()) waiting_since_ = loop().now();
  const absl::Time limit = waiting_since_ + idle_limit_;
  if (loop().now() < limit) return loop().timers().Set(idle_timer_, limit);
  const std::shared_ptr<Call> self = shared_from_this();
  const absl::Status idle = Idle(idle_limit_, /*reads=*/!writing_);
  if (!writing_) return Finish(idle);
  Reset(idle);
}

}  // namespace phimap
