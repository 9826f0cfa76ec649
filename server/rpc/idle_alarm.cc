#include "server/rpc/idle_alarm.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/error.h"

namespace phimap {

IdleAlarm::IdleAlarm(absl::Duration limit, std::weak_ptr<void> call, WaitingSince since,
                     std::function<void()> silent)
    : limit_(limit), call_(std::move(call)), since_(std::move(since)), silent_(std::move(silent)) {
  Set(limit);
}

void IdleAlarm::Set(absl::Duration wait) {
  // A new alarm each time: one that rings is still in use until its callback has returned.
  alarm_ = std::make_unique<grpc::Alarm>();
  alarm_->Set(absl::ToChronoTime(absl::Now() + wait), [this, call = call_](bool rang) {
    const std::shared_ptr<void> held = call.lock();
    if (rang && held != nullptr) Look();
  });
}

void IdleAlarm::Look() {
  const std::optional<absl::Time> since = since_();
  if (!since.has_value()) return;
  const absl::Time now = absl::Now();
  const absl::Duration left = std::min(*since, now) + limit_ - now;
  if (left > absl::ZeroDuration()) return Set(left);
  silent_();
}

absl::Status SilentStream(absl::Duration limit) {
  return MakeError(absl::StatusCode::kDeadlineExceeded, "IDLE_STREAM", "",
                   absl::StrCat("nothing came for ", absl::FormatDuration(limit),
                                " and the stream was not finished"),
                   {{"limit", absl::FormatDuration(limit)}});
}

}  // namespace phimap
