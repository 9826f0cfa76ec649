// Decides when long work lets other work go first.
#ifndef PHIMAP_SERVER_SCHEDULE_WORK_QUANTUM_H_
#define PHIMAP_SERVER_SCHEDULE_WORK_QUANTUM_H_

#include <chrono>
#include <functional>
#include <optional>

namespace phimap {

// Measures how long a piece of work has run, and yields between two of its steps once that time
// reaches a quantum. On a busy server, a yield waits for up to 20 ms. Yields depend on the time
// worked, not on the number of steps. So they take the same share of the time for short steps (0.3
// ms for a block of a stream) as for long steps (10 ms for a tile).
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

  // Time worked between two yields: short compared with the longest wait of a Transform, long
  // compared with a small block.
  static constexpr Clock::duration kDefault = std::chrono::milliseconds(2);

  // Calls `yield`, which may be empty, once work has run for `quantum`, or before every step if
  // `quantum` is 0.
  explicit WorkQuantum(std::function<void()> yield = nullptr, Clock::duration quantum = kDefault,
                       std::function<Clock::time_point()> now = Clock::now);

  // The time from here to End counts as work, except for yields.
  void Begin();
  void End();
  // To be called between two steps, whether between Begin and End or not.
  void YieldIfDue();

 private:
  // Adds the time since the work began, or since the last call of Count.
  void Count();

  std::function<void()> yield_;
  Clock::duration quantum_;
  std::function<Clock::time_point()> now_;
  // Time up to which work was counted; unset while no work runs.
  std::optional<Clock::time_point> since_;
  // Time worked since the last yield.
  Clock::duration worked_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_WORK_QUANTUM_H_
