// Decides when calls of a load test are due, and which of them count. Pure functions of times in
// nanoseconds of one monotonic clock.
#ifndef PHIMAP_CLIENT_CLI_BENCH_BENCH_SCHEDULE_H_
#define PHIMAP_CLIENT_CLI_BENCH_BENCH_SCHEDULE_H_

#include <cstdint>

namespace phimap::cli {

// An open loop: calls at a fixed rate from `start_ns`, whether or not earlier calls have ended.
// Each time is computed from the first call, so that rounding does not add up. REQUIRES:
// calls_per_second > 0.
struct OpenLoopSchedule {
  int64_t start_ns = 0;
  double calls_per_second = 1;

  // Time at which call `call`, counted from 0, is due.
  int64_t DueNs(int64_t call) const {
    return start_ns + static_cast<int64_t>(static_cast<double>(call) * 1e9 / calls_per_second);
  }
};

// The life of one call. In a closed loop it is due when it is sent.
struct CallTimes {
  int64_t due_ns = 0;
  int64_t sent_ns = 0;
  int64_t done_ns = 0;

  // Measured from the due time: a call that was sent late because the server or this generator was
  // slow must not look fast (coordinated omission).
  int64_t LatencyNs() const { return done_ns - due_ns; }
  // Lateness of the generator itself.
  int64_t LatenessNs() const { return sent_ns - due_ns; }
};

// The part of a run that is counted, after the warm-up.
struct BenchWindow {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;

  bool Holds(int64_t time_ns) const { return begin_ns <= time_ns && time_ns < end_ns; }
  double seconds() const { return static_cast<double>(end_ns - begin_ns) * 1e-9; }
  // Whether the call counts for throughput: it ended within the window.
  bool CountsForRate(const CallTimes& call) const { return Holds(call.done_ns); }
  // Whether a call counts for latency. In an open loop, every call counts that was due within the
  // window, however late it ends. In a closed loop, every call counts that ended within the window.
  bool CountsForLatency(const CallTimes& call, bool open_loop) const {
    return Holds(open_loop ? call.due_ns : call.done_ns);
  }
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_BENCH_BENCH_SCHEDULE_H_
