#include "server/observe/log_rate.h"

#include <algorithm>
#include <cstddef>

namespace phimap {

bool LogRate::Admit(LogLevel level, absl::string_view event, Clock::time_point now) {
  if (level == LogLevel::kDebug) return true;
  MutexLock lock(&mutex_);
  auto& buckets = buckets_[static_cast<size_t>(level)];
  auto found = buckets.find(event);
  if (found == buckets.end()) {
    found = buckets.emplace(std::string(event), Bucket{options_.burst, now}).first;
  }
  Bucket& bucket = found->second;
  // Threads may arrive here in another order than that in which they read the clock, so `now` may
  // be earlier than `bucket.filled`.
  if (now > bucket.filled) {
    const double seconds = std::chrono::duration<double>(now - bucket.filled).count();
    bucket.lines = std::min(options_.burst, bucket.lines + seconds * options_.lines_per_second);
    bucket.filled = now;
  }
  if (bucket.lines < 1) return false;
  bucket.lines -= 1;
  return true;
}

}  // namespace phimap
