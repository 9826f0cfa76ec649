// Generates load: sends calls for features or predictions, in a closed or open loop, and
// counts the results.
#ifndef PHIMAP_CLIENT_CLI_BENCH_BENCH_LOAD_H_
#define PHIMAP_CLIENT_CLI_BENCH_BENCH_LOAD_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/bench/bench_histogram.h"
#include "client/cpp/cancel_token.h"
#include "client/cpp/client.h"

namespace phimap::cli {

enum class BenchProtocol {
  // phimap.v1.TransformService/Transform.
  kNative,
  // phimap.v1.PredictService/Predict: labels or values alone.
  kPredict,
  // The Open Inference Protocol's ModelInfer, raw contents.
  kInference,
};

// "native", "predict" or "inference".
absl::string_view ProtocolName(BenchProtocol protocol);

// Resources that a process has used so far, as the kernel reports them.
struct ProcessUse {
  // User and system time of all threads, in microseconds.
  double cpu_us = 0;
  int64_t resident_bytes = 0;
  // Peak since the process started, or since 5 was written to /proc/PID/clear_refs.
  int64_t peak_resident_bytes = 0;
};

// Returns the use of any process that /proc shows, its CPU time to one tick of the kernel (10 ms).
// kNotFound if there is no such process.
absl::StatusOr<ProcessUse> UseOf(pid_t pid);

// Processors that this process may run on.
int UsableProcessors();

// When calls of a load test are due, and which of them count: pure functions of times in
// nanoseconds of one monotonic clock.
//
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

struct LoadOptions {
  BenchProtocol protocol = BenchProtocol::kNative;
  // Address in gRPC's form: "host:port" or "unix:/path".
  std::string target;
  // Token and TLS for the target.
  client::ConnectOptions connect;
  std::string reference;
  // Number of callers of a closed loop. Each has one call in flight, and starts the next when that
  // call ends.
  int callers = 1;
  // Calls per second of an open loop; 0: closed loop.
  double rate = 0;
  int32_t rows = 1;
  int32_t columns = 0;
  double seconds = 10;
  // Duration of the warm-up before the measurement; its calls are not counted.
  double warmup_seconds = 1;
  // Number of connections, which calls use round-robin.
  int channels = 1;
  double timeout_seconds = 10;
  // Maximum number of unanswered calls in an open loop. Later calls wait, and the wait counts as
  // latency.
  int max_in_flight = 10'000;
  // Process id of the server if it runs on this machine, to measure its CPU time and memory; 0:
  // unknown.
  pid_t server_pid = 0;

  bool open_loop() const { return rate > 0; }
};

struct LoadResult {
  // Version from the first answer, as "name@number", and its number of features per row.
  std::string version;
  int64_t feature_columns = 0;
  double seconds = 0;
  // Calls that ended within the window: `calls` counts all of them, `answered` those that were
  // answered with features.
  int64_t calls = 0;
  int64_t answered = 0;
  // Calls that ended within the window with an error, by name of the code.
  std::map<std::string, int64_t> errors;
  // Nanoseconds from the due time of a call to its end: `latency` of answered calls,
  // `refusal_latency` of calls that were refused (RESOURCE_EXHAUSTED).
  BenchHistogram latency;
  BenchHistogram refusal_latency;
  // Nanoseconds between the due time and the sending of a call, in an open loop.
  BenchHistogram lateness;
  double generator_cpu_us = 0;
  // The server's CPU time within the window, and its memory at the end of the window.
  std::optional<ProcessUse> server;
};

// Connects, makes one call that must succeed, warms up, and measures. Errors: kUnavailable if no
// server answers, the status of the first call, kCancelled. Later errors are counted instead. Takes
// two threads (three in an open loop) besides gRPC's own. To keep the generator cheap, requests are
// serialized only once and answers are not parsed.
absl::StatusOr<LoadResult> RunLoad(const LoadOptions& options, client::CancelToken& cancel);

// Formats the result of `phimap bench` for people. Ends with a newline. Pure.
std::string LoadTable(const LoadOptions& options, const LoadResult& result, int processors);

// Formats the result as one JSON object: every field is always present, `server` is null if
// unknown, numbers are numbers, names end with their units, and later releases only add fields.
// Ends with a newline. Pure.
std::string LoadJson(const LoadOptions& options, const LoadResult& result, int processors);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_BENCH_BENCH_LOAD_H_
