// Limits useless work that a client can cause: empty frames, oversized headers and resets.
#ifndef PHIMAP_SERVER_TRANSPORT_FLOOD_GUARD_H_
#define PHIMAP_SERVER_TRANSPORT_FLOOD_GUARD_H_

#include <cstddef>

#include "absl/time/time.h"
#include "server/transport/connection_limits.h"
#include "server/transport/reset_allowance.h"

namespace phimap {

// Frames and header bytes are counted in periods of one second. A period begins with the first
// event after the end of the previous period. Not thread-safe.
class FloodGuard {
 public:
  // `limits` must outlive the guard.
  explicit FloodGuard(const ConnectionLimits& limits) : limits_(limits) {}

  // Counts a frame that carries neither call nor data. Returns false if there are too many.
  bool CountControlFrame(absl::Time now) {
    StartSecond(now);
    return ++control_frames_ <= limits_.max_control_frames;
  }
  // Counts a header field that is dropped because its call exceeds max_header_bytes. Returns false
  // if too many bytes were dropped.
  bool CountDroppedHeader(size_t bytes, absl::Time now) {
    StartSecond(now);
    dropped_header_bytes_ += bytes;
    return dropped_header_bytes_ <= limits_.max_dropped_header_bytes;
  }
  // Counts a stream that the client resets. Returns false if the client does little else than reset
  // streams. `answered`: the stream was answered at least in part, or was long-lived.
  bool CountReset(bool answered, absl::Time now) { return answered || resets_.Take(now); }
  // Notes that an answered stream has ended, which allows the client one more reset.
  void EarnReset() { resets_.Earn(); }

 private:
  void StartSecond(absl::Time now) {
    if (now - second_ < absl::Seconds(1)) return;
    second_ = now;
    control_frames_ = 0;
    dropped_header_bytes_ = 0;
  }

  const ConnectionLimits& limits_;
  absl::Time second_ = absl::InfinitePast();
  int control_frames_ = 0;
  size_t dropped_header_bytes_ = 0;
  ResetAllowance resets_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_FLOOD_GUARD_H_
