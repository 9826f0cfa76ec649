// Limits how many streams a client may reset.
#ifndef PHIMAP_SERVER_TRANSPORT_RESET_ALLOWANCE_H_
#define PHIMAP_SERVER_TRANSPORT_RESET_ALLOWANCE_H_

#include <algorithm>

#include "absl/time/time.h"

namespace phimap {

// A client that opens streams only to reset them makes the server work for nothing. But honest
// clients reset streams too, when they cancel a call or its deadline passes. Therefore only a
// stream that was reset before any answer, and before it was kLongLived old, uses up the allowance.
// Each other stream that ends earns one more reset, so that a busy client may cancel as many calls
// as it completes. The allowance also refills by kPerSecond, up to kBurst. Not thread-safe.
class ResetAllowance {
 public:
  static constexpr int kBurst = 2'000;
  static constexpr int kPerSecond = 200;
  static constexpr absl::Duration kLongLived = absl::Seconds(1);

  // Notes the end of a stream that was answered, at least in part, or was long-lived.
  void Earn() { left_ = std::min<double>(left_ + 1, kBurst); }
  // Notes the reset of any other stream. Returns false if there were too many.
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
