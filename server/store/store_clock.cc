#include "server/store/store_clock.h"

#include "core/status/status_macros.h"

namespace phimap {

absl::StatusOr<absl::Time> StoreClock::Now(SqlSession& session) {
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows, session.Run("SELECT now_us FROM clock"));
  const absl::Time time = absl::FromUnixMicros(rows.Int(0, 0));
  Note(time);
  return time;
}

void StoreClock::Note(absl::Time time) {
  MutexLock lock(&mutex_);
  const absl::Time at = steady_();
  // A slow answer makes the time look older than it is, which hides no jump: the next look shows
  // it.
  if (last_.has_value() && (time - last_->time) - (at - last_->at) > kLargestJump) {
    jumped_at_ = at;
    ++jumps_;
  }
  last_ = {time, at};
}

bool StoreClock::trusted() const {
  MutexLock lock(&mutex_);
  return !jumped_at_.has_value() || steady_() - *jumped_at_ >= kDistrust;
}

int64_t StoreClock::jumps() const {
  MutexLock lock(&mutex_);
  return jumps_;
}

}  // namespace phimap
