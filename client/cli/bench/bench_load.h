// Generates load: calls for features in either protocol, closed or open loop, and counts their
// results.
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
  // Closed loop: calls in flight, each followed by the next one of its caller.
  int callers = 1;
  // Calls per second of an open loop; 0: closed loop.
  double rate = 0;
  int32_t rows = 1;
  int32_t columns = 0;
  double seconds = 10;
  // Time before the measurement, which is not counted.
  double warmup_seconds = 1;
  // Connections, taken in turn.
  int channels = 1;
  double timeout_seconds = 10;
  // Maximum number of unanswered calls in an open loop. Later calls wait, and the wait counts as
  // latency.
  int max_in_flight = 10'000;
  // Process of the server on this machine, whose usage is then measured; 0: unknown.
  pid_t server_pid = 0;

  bool open_loop() const { return rate > 0; }
};

struct LoadResult {
  // Version from the first answer, as "name@number", and its number of features per row.
  std::string version;
  int64_t feature_columns = 0;
  double seconds = 0;
  // Calls that ended within the window: all calls, and the calls that were answered with features.
  int64_t calls = 0;
  int64_t answered = 0;
  // Calls that ended within the window with an error, by name of the code.
  std::map<std::string, int64_t> errors;
  // Nanoseconds from the due time to the end of the call: of answers, and of refusals
  // (RESOURCE_EXHAUSTED).
  BenchHistogram latency;
  BenchHistogram refusal_latency;
  // Nanoseconds between the due time and the sending of a call, in an open loop.
  BenchHistogram lateness;
  double generator_cpu_us = 0;
  // CPU time within the window, and memory at its end.
  std::optional<ProcessUse> server;
};

// Connects, makes one call that must succeed, warms up, measures. Errors: kUnavailable if no server
// answers, the status of the first call, kCancelled; later errors are counted. Takes two threads
// (three in an open loop) besides gRPC's own; requests are serialized once and answers are not
// parsed, so that the generator costs little.
absl::StatusOr<LoadResult> RunLoad(const LoadOptions& options, client::CancelToken& cancel);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_BENCH_BENCH_LOAD_H_
