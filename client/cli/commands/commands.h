// The commands of `phimap`, one a file, and what they are given.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_COMMANDS_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_COMMANDS_H_

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "client/cli/local/local_maps.h"
#include "client/cli/views/console.h"
#include "client/cpp/cancel_token.h"
#include "client/cpp/client.h"

namespace CLI {
class App;
}

namespace phimap::cli {

// Context of a command that maps, builds or learns, on a server or in this process. Data goes to
// `out`, messages and progress to `console`. All outlive the command.
struct RowContext {
  client::RowCalls& maps;
  std::ostream& out;
  Console console;
  client::CancelToken& cancel;
  // Whether `out` is coloured.
  bool color = false;
  // `maps`, if they are in this process; null with a server.
  LocalMaps* local = nullptr;
};

// Context of a command that asks a server.
struct CommandContext : RowContext {
  client::Client& client;
  // Options with which `client` was connected, for a command that connects once more.
  std::string server = {};
  client::ConnectOptions connect = {};
};

// Context of a command that needs no server.
struct LocalContext {
  std::ostream& out;
  Console console;
  client::CancelToken& cancel;
  // Definition of the whole command line, which is `phimap` itself.
  const CLI::App& app;
};

// Flags of commands that make a version, or, in this process, a file.
struct LocalOutput {
  bool local = false;
  std::string path;
};
void AddLocalOutput(CLI::App& command, LocalOutput& output);
// Checks the flags, and that a version that a server stores gets a name.
absl::Status CheckLocalOutput(const LocalOutput& output, bool has_name);

// A command of `phimap`. Each command is added, with its flags, by a function in its own file. The
// functions below own the values of the flags.
struct Command {
  // Owned by `phimap`.
  CLI::App* app = nullptr;
  // Exactly one of the three functions is set.
  std::function<absl::Status(CommandContext&)> run = nullptr;
  // `run_on_rows` runs without a server if `is_local` says so.
  std::function<absl::Status(RowContext&)> run_on_rows = nullptr;
  std::function<bool()> is_local = nullptr;
  std::function<absl::Status(LocalContext&)> run_locally = nullptr;
  // Whether --json was given; null for commands without this flag.
  const bool* json = nullptr;
  // Whether Ctrl-C cancels the context's token, so that the command can end tidily.
  bool interruptible = false;
};

// Each adds a command with its flags to `app`, which is `phimap`.
Command AddBuild(CLI::App& app);
Command AddTransform(CLI::App& app);
Command AddTrain(CLI::App& app);
Command AddTune(CLI::App& app);
Command AddPredict(CLI::App& app);
Command AddList(CLI::App& app);
Command AddShow(CLI::App& app);
Command AddVerify(CLI::App& app);
Command AddAdvise(CLI::App& app);
Command AddEvaluate(CLI::App& app);
Command AddSweep(CLI::App& app);
Command AddAlias(CLI::App& app);
Command AddDelete(CLI::App& app);
Command AddKeep(CLI::App& app);
Command AddPrune(CLI::App& app);
Command AddDrift(CLI::App& app);
Command AddAudit(CLI::App& app);
Command AddExport(CLI::App& app);
Command AddImport(CLI::App& app);
Command AddInspect(CLI::App& app);
Command AddCapabilities(CLI::App& app);
Command AddHealth(CLI::App& app);
Command AddBench(CLI::App& app);
Command AddCompletion(CLI::App& app);

// `phimap verify`, for its test.
struct VerifyArguments {
  std::string reference;
};

// Sends the reference vectors of the version's certificate and compares the bits of the features.
// Sends them one by one, all together, and repeated in a batch that is large enough for the
// engine's path for many rows; each time as float32 and as float64. The message of DATA_LOSS shows
// the first feature that differs. FAILED_PRECONDITION if the version has no reference vectors, or
// if all their features are 0.
absl::Status RunVerify(const VerifyArguments& arguments, CommandContext& context);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_COMMANDS_H_
