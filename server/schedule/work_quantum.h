// When work that takes long lets others go first.
#ifndef PHIMAP_SERVER_SCHEDULE_WORK_QUANTUM_H_
#define PHIMAP_SERVER_SCHEDULE_WORK_QUANTUM_H_

#include <chrono>
#include <functional>
#include <optional>

namespace phimap {

// Counts the time that a piece of work has run, and yields between two of its steps once that is a
// quantum. A yield, which waits for up to 20 ms on a busy server, therefore costs an equal share of
// the time for all step lengths: blocks of a stream of 0.3 ms each, or tiles of 10 ms.
//
// Example:
//   quantum.YieldIfDue();  // not while anything is held that others wait for
//   quantum.Begin();
//   …                      // work; YieldIfDue() between its steps
//   quantum.End();
//
// Used by one thread at a time.
class WorkQuantum {
 public:
  using Clock = std::chrono::steady_clock;

  // Work between two yields: short compared with the longest wait of a Transform, long compared
  // with a small block.
  static constexpr Clock::duration kDefault = std::chrono::milliseconds(2);

  // Yields by `yield`, which may be empty, once work has run for `quantum`; before every step if
  // that is 0.
  explicit WorkQuantum(std::function<void()> yield = nullptr, Clock::duration quantum = kDefault,
                       std::function<Clock::time_point()> now = Clock::now);

  // The time from here to End counts as work, except for yields.
  void Begin();
  void End();
  // Between two steps, whether between Begin and End or not.
  void YieldIfDue();

 private:
  // Adds the time since the work began, or since the last call of Count.
  void Count();

  std::function<void()> yield_;
  Clock::duration quantum_;
  std::function<Clock::time_point()> now_;
  // Unset: nothing runs.
  std::optional<Clock::time_point> since_;
  // Since the last yield.
  Clock::duration worked_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_WORK_QUANTUM_H_
