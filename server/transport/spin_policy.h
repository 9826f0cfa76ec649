// Decides whether an idle event loop keeps polling its sockets for a moment before it sleeps.
#ifndef PHIMAP_SERVER_TRANSPORT_SPIN_POLICY_H_
#define PHIMAP_SERVER_TRANSPORT_SPIN_POLICY_H_

#include <cstdint>

namespace phimap {

// Spinning saves the caller the time that waking a thread takes, but it occupies a core. It pays if
// this process does not need the core, or if the next event is near. While a build or long work of
// the pool runs, spinning would take the core from that work. The loop would also exceed its share
// of CPU time and have to wait when it wakes (on two cores with a build running, this wait was a
// third of the p90 latency of Transforms).
class SpinPolicy {
 public:
  // Clock readings in ns: wall time, and the CPU time of the process and of the loop's thread.
  struct Times {
    int64_t wall = 0;
    int64_t process = 0;
    int64_t thread = 0;
  };

  // The loop always spins while this process uses at most this share of the other cores.
  static constexpr double kMostInUse = 0.25;
  // If the process uses more, the loop spins only if at least this share of the recent waits (about
  // 16) ended within the time of a spin.
  static constexpr double kLeastHits = 0.75;
  // Interval between two readings of the clocks. The CPU time of other threads is updated only at
  // the timer ticks of their cores, which may be 10 ms apart.
  static constexpr int64_t kWindowNs = 50'000'000;

  // `cores`: number of cores that the process may use, at least 1.
  explicit SpinPolicy(int cores) : others_(cores > 1 ? cores - 1 : 1) {}

  // Reads the clocks. The field `thread` is the CPU time of the calling thread.
  static Times Now();

  // Whether NoteTimes is due.
  bool IsDue(int64_t wall_ns) const { return wall_ns - last_.wall >= kWindowNs; }
  void NoteTimes(const Times& now);
  // To be called after each wait, whether the loop spun or slept. `hit`: the wait ended within the
  // time of a spin.
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
