// Lets a line be logged at most once in ten seconds, so that a flood of clients does not fill the
// log.
#ifndef PHIMAP_SERVER_OBSERVE_SELDOM_H_
#define PHIMAP_SERVER_OBSERVE_SELDOM_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace phimap {

// Thread-safe.
class Seldom {
 public:
  // Returns true if the last call that returned true was ten seconds ago or there was none.
  bool Now() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    int64_t quiet_until = quiet_until_.load(std::memory_order_relaxed);
    if (now.count() < quiet_until) return false;
    return quiet_until_.compare_exchange_strong(quiet_until, (now + kQuiet).count());
  }

 private:
  static constexpr std::chrono::steady_clock::duration kQuiet = std::chrono::seconds(10);
  std::atomic<int64_t> quiet_until_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_SELDOM_H_
