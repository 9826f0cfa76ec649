// Generates load: sends calls for features, in either protocol and in a closed or open loop, and
// counts the results.
#ifndef PHIMAP_CLIENT_CLI_BENCH_BENCH_LOAD_H_
#define PHIMAP_CLIENT_CLI_BENCH_BENCH_LOAD_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/bench/bench_histogram.h"
#include "client/cli/bench/bench_messages.h"
#include "client/cli/bench/bench_process.h"
#include "client/cpp/cancel_token.h"
#include "client/cpp/client.h"

namespace phimap::cli {

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

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_BENCH_BENCH_LOAD_H_
