// Limits how many streams a client may reset.
#ifndef PHIMAP_SERVER_TRANSPORT_RESET_ALLOWANCE_H_
#define PHIMAP_SERVER_TRANSPORT_RESET_ALLOWANCE_H_

#include <algorithm>

#include "absl/time/time.h"

namespace phimap {

// A client that opens streams to reset them makes the server work for nothing. But clients with
// short deadlines, and those that cancel, reset streams too: only a stream that was reset before it
// got any answer and before kLongLived counts. Each other stream that ends earns one more, so that
// a busy client may give up as many calls as it waits for. Not thread-safe.
class ResetAllowance {
 public:
  static constexpr int kBurst = 2'000;
  static constexpr int kPerSecond = 200;
  static constexpr absl::Duration kLongLived = absl::Seconds(1);

  // A stream has ended that was answered, if only in part, or lived long.
  void Earn() { left_ = std::min<double>(left_ + 1, kBurst); }
  // A stream was reset that was neither; false when there were too many.
  bool Take(absl::Time now) {
    const double seconds = absl::ToDoubleSeconds(std::min(now - last_, absl::Hours(1)));
    last_ = now;
    left_ = std::min<double>(left_ + seconds * kPerSecond, kBurst);
    left_ -= 1;
    return left_ >= 0;
  }

 private:
  double left_ = kBurst;
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_RESET_ALLOWANCE_H_
