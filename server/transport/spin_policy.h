// Whether the event loop looks at its sockets a little longer before it sleeps.
#ifndef PHIMAP_SERVER_TRANSPORT_SPIN_POLICY_H_
#define PHIMAP_SERVER_TRANSPORT_SPIN_POLICY_H_

#include <cstdint>

namespace phimap {

// A loop that looks on saves its caller the time to wake a thread, and takes a core to do so. The
// core must be one that this process does not need, or the next event must be near: beside a build,
// or beside long work of the pool, spinning would take the core from those, and the loop, having
// run more than its share, would have to wait when it wakes (on two cores beside a build, a third
// of the p90 of Transforms).
class SpinPolicy {
 public:
  // Time so far, in ns: wall time, and CPU time of the process and of the loop's thread.
  struct Times {
    int64_t wall = 0;
    int64_t process = 0;
    int64_t thread = 0;
  };

  // Share of the other cores that may be in use while the loop spins.
  static constexpr double kMostInUse = 0.25;
  // If more waits are short, the share of the last waits (about 16) that must have ended within a
  // spin.
  static constexpr double kLeastHits = 0.75;
  // Minimum time between two readings of the times. Other threads' times are exact only to the last
  // tick of their core, and ticks may be 10 ms apart.
  static constexpr int64_t kWindowNs = 50'000'000;

  // `cores` that the process may use, at least 1.
  explicit SpinPolicy(int cores) : others_(cores > 1 ? cores - 1 : 1) {}

  // Times of the calling thread.
  static Times Now();

  // Whether a look at the times is due.
  bool IsDue(int64_t wall_ns) const { return wall_ns - last_.wall >= kWindowNs; }
  void NoteTimes(const Times& now);
  // Called after each wait, whether the loop spun or slept: `hit` if it ended within the time of a
  // spin.
  void NoteWait(bool hit) { hits_ += ((hit ? 1.0 : 0.0) - hits_) / 16; }
  bool pays() const { return core_free_ || hits_ >= kLeastHits; }

 private:
  const int others_;
  Times last_;
  bool core_free_ = true;
  double hits_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_SPIN_POLICY_H_
