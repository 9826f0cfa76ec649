// `phimap bench`.
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/bench/bench_load.h"
#include "client/cli/commands/commands.h"
#include "core/status/command_line.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

struct BenchArguments {
  // `target` and `connect` are set from the context. If `columns` is 0, the number of
  // columns of the version is used.
  LoadOptions load;
  // "native", "predict" or "inference".
  std::string protocol = "native";
  bool json = false;
};

// Returns the number of columns of the version's rows. Asks by a Transform of one column, which a
// server answers from its memory; GetVersion would need the store's database.
absl::StatusOr<int32_t> ColumnsOf(client::Client& client, const std::string& reference) {
  const absl::Status mapped =
      client.Transform(reference, client::MakeRowBlock(std::vector<float>{0}, 1)).status();
  if (mapped.ok()) return 1;
  const ErrorDetail detail = DetailOf(mapped).value_or(ErrorDetail());
  int32_t columns = 0;
  const auto expected = detail.metadata.find("expected");
  if (detail.reason == reason::kColumnsMismatch && expected != detail.metadata.end() &&
      absl::SimpleAtoi(expected->second, &columns) && columns > 0) {
    return columns;
  }
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version, client.GetVersion(reference));
  if (version.input_columns() > 0) return version.input_columns();
  return absl::InvalidArgumentError(
      absl::StrCat(reference, " maps strings; bench can only generate rows of numbers"));
}

// Loads the server with calls for features for a while and prints the measurements: a table, or one
// JSON object. Calls that fail under load are part of the result; the command fails if the load
// cannot be started.
absl::Status RunBench(const BenchArguments& arguments, CommandContext& context) {
  LoadOptions options = arguments.load;
  for (const BenchProtocol protocol :
       {BenchProtocol::kNative, BenchProtocol::kPredict, BenchProtocol::kInference}) {
    if (ProtocolName(protocol) == arguments.protocol) options.protocol = protocol;
  }
  options.target = context.server;
  options.connect = context.connect;
  if (options.columns == 0) {
    PHIMAP_ASSIGN_OR_RETURN(options.columns, ColumnsOf(context.client, options.reference));
  }
  if (options.server_pid != 0 && absl::IsNotFound(UseOf(options.server_pid).status())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--server_pid: there is no process ", options.server_pid, " on this machine"));
  }
  PHIMAP_ASSIGN_OR_RETURN(const LoadResult result, RunLoad(options, context.cancel));
  const int processors = UsableProcessors();
  context.out << (arguments.json ? LoadJson(options, result, processors)
                                 : LoadTable(options, result, processors));
  return absl::OkStatus();
}

void AddBenchLoad(CLI::App& command, LoadOptions& load) {
  CLI::Option* const callers = command
                                   .add_option("--callers", load.callers,
                                               "Number of callers in a closed loop: each sends its "
                                               "next call when the last was answered")
                                   ->check(IntegerFrom(1, 10'000))
                                   ->capture_default_str();
  command
      .add_option("--rate", load.rate,
                  "Calls per second in an open loop, independent of the answers; latency counts "
                  "from the time when a call was due")
      ->check(NumberFrom(0.001, 1e7))
      ->excludes(callers);
  command.add_option("--rows", load.rows, "Rows per call")
      ->check(IntegerFrom(1, 65'536))
      ->capture_default_str();
  command.add_option("--seconds", load.seconds, "Duration of the measurement in seconds")
      ->check(NumberFrom(0.01, 86'400.0))
      ->capture_default_str();
  command.add_option("--warmup", load.warmup_seconds, "Seconds of warm-up before the measurement")
      ->check(NumberFrom(0.0, 86'400.0))
      ->capture_default_str();
  command.add_option("--timeout", load.timeout_seconds, "Deadline of a call in seconds")
      ->check(NumberFrom(1.0, 86'400.0))
      ->capture_default_str();
}

}  // namespace

Command AddBench(CLI::App& app) {
  auto arguments = std::make_shared<BenchArguments>();
  BenchArguments& bench = *arguments;
  CLI::App* command = app.add_subcommand("bench", "Measure a server under load");
  command
      ->add_option("NAME[@VERSION]", bench.load.reference,
                   "A mapping or a version of it (default: the newest)")
      ->required();
  AddBenchLoad(*command, bench.load);
  command
      ->add_option(
          "--protocol", bench.protocol,
          "Kind of calls: native (Transform), predict (Predict) or inference (ModelInfer of "
          "the Open Inference Protocol)")
      ->check(OneOf({"native", "predict", "inference"}))
      ->capture_default_str();
  command
      ->add_option("--connections,--channels", bench.load.channels,
                   "Number of connections, shared evenly by the callers")
      ->check(IntegerFrom(1, 1'000))
      ->capture_default_str();
  command
      ->add_option("--max_in_flight", bench.load.max_in_flight,
                   "Maximum number of unanswered calls of an open loop")
      ->check(IntegerFrom(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--columns", bench.load.columns, "Columns per row (default: the version's)")
      ->check(IntegerFrom(1, 65'536));
  command->add_option("--server_pid", bench.load.server_pid,
                      "Process of the server on this machine, to measure its CPU time and memory");
  command->add_flag("--json", bench.json, "Print one JSON object");
  return {.app = command,
          .run = [arguments](CommandContext& context) { return RunBench(*arguments, context); },
          .json = &bench.json,
          .interruptible = true};
}

}  // namespace phimap::cli
