// The command `phimap`: a list of its commands. Each command's options and actions are in its own
// file.
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "client/cli/arguments/flags.h"
#include "client/cli/commands/commands.h"
#include "client/cli/interrupt.h"
#include "client/cli/local/local_maps.h"
#include "client/cli/usage.h"
#include "client/cli/views/console.h"
#include "client/cli/views/views.h"
#include "client/files/output_file.h"
#include "core/status/command_line.h"
#include "core/status/error.h"
#include "core/status/exit_code.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

constexpr char kExitCodeHelp[] =
    "Exit codes:\n  0    done\n  1    failed: damaged data, a full disk, or a bug\n  2    "
    "wrong usage or bad input; the message names the place\n  3    no such mapping, version "
    "or alias\n  4    the server cannot be reached\n  5    the server refused: a "
    "precondition, a limit, a permission, or not implemented\n  6    timed out\n  130  "
    "interrupted or cancelled\n";

// Options of all commands.
struct Globals {
  std::string server = "127.0.0.1:7450";
  AccessArguments access;
  std::string color = "auto";
};

std::vector<Command> AddCommands(CLI::App& app) {
  return {
      AddBuild(app),        AddTransform(app), AddTrain(app),  AddTune(app),       AddPredict(app),
      AddList(app),         AddShow(app),      AddVerify(app), AddAdvise(app),     AddEvaluate(app),
      AddSweep(app),        AddAlias(app),     AddDelete(app), AddKeep(app),       AddPrune(app),
      AddDrift(app),        AddAudit(app),     AddExport(app), AddImport(app),     AddInspect(app),
      AddCapabilities(app), AddHealth(app),    AddBench(app),  AddCompletion(app), AddHelp(app)};
}

void AddGlobals(CLI::App& app, Globals& globals) {
  app.add_option(
         "--server", globals.server,
         "HOST:PORT, unix:PATH, or several: ipv4:ADDRESS:PORT,ADDRESS:PORT or dns:///HOST:PORT")
      ->envname("PHIMAP_SERVER")
      ->capture_default_str();
  AddAccess(app, globals.access);
  app.add_option(
         "--color", globals.color,
         "Colours: auto, always or never; auto uses them on terminals, unless NO_COLOR is set")
      ->check(OneOf({"auto", "always", "never"}))
      ->capture_default_str();
  app.set_version_flag("--version", "phimap " PHIMAP_VERSION, "Print the version and exit");
  app.require_subcommand(1);
  app.fallthrough();  // --server may follow the subcommand.
  app.footer(kExitCodeHelp);
}

absl::Status RunCommand(const Command& command, const Globals& globals, const CLI::App& app) {
  const ColorChoice color = ParseColorChoice(globals.color);
  client::CancelToken cancel;
  std::unique_ptr<Interrupt> interrupt;
  if (command.interruptible) interrupt = std::make_unique<Interrupt>(cancel);
  if (command.run_locally != nullptr) {
    LocalContext context{std::cout, StandardErrorConsole(color), cancel, app};
    return command.run_locally(context);
  }
  const bool colored = UsesColor(color, STDOUT_FILENO);
  if (command.is_local != nullptr && command.is_local()) {
    LocalMaps maps;
    RowContext context{maps, std::cout, StandardErrorConsole(color), cancel, colored, &maps};
    return command.run_on_rows(context);
  }
  PHIMAP_ASSIGN_OR_RETURN(const client::ConnectOptions connect, ToConnectOptions(globals.access));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<client::Client> client,
                          client::Client::Connect(globals.server, connect));
  CommandContext context{{*client, std::cout, StandardErrorConsole(color), cancel, colored},
                         *client,
                         globals.server,
                         connect};
  return command.run_on_rows != nullptr ? command.run_on_rows(context) : command.run(context);
}

void SayError(const absl::Status& status, const Command& command, const Globals& globals) {
  // With --json the caller is a program, which compares the API's field names, so they are not
  // replaced by options.
  const bool json = command.json != nullptr && *command.json;
  std::string text = ErrorText(status, globals.server, json ? "" : command.app->get_name());
  const bool color = UsesColor(ParseColorChoice(globals.color), STDERR_FILENO);
  constexpr absl::string_view kName = "phimap:";
  text.replace(0, kName.size(), Colored(kName, Color::kRed, color));
  std::cerr << text << std::flush;
}

// Returns whether the command failed because nobody reads its output, as in `phimap list | head`.
bool IsUnread(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (detail.has_value() && detail->reason == kReaderIsGone) return true;
  pollfd out{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return !std::cout && poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

// Ends the process as a pipe without a reader ends other tools. All that the command leaves behind
// is tidied up by now.
int EndUnread() {
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
  return 128 + SIGPIPE;  // The signal is blocked.
}

int Run(int argc, char** argv) {
  Globals globals;
  CLI::App app(
      "phimap: kernels as features. Data goes to standard output, messages to standard error.",
      "phimap");
  AddGlobals(app, globals);
  const std::vector<Command> commands = AddCommands(app);
  absl::StatusOr<std::vector<std::string>> words = WithKnownFlags(app, argc, argv);
  if (!words.ok()) {
    std::cerr << ErrorText(words.status(), globals.server, "") << std::flush;
    return static_cast<int>(ExitCode::kBadInput);
  }
  try {
    std::reverse(words->begin(), words->end());  // CLI11 expects the last word first.
    app.parse(*std::move(words));
  } catch (const CLI::ParseError& error) {
    return static_cast<int>(AnswerParseError(app, error));  // --help arrives here too.
  }
  const auto command = std::find_if(commands.begin(), commands.end(),
                                    [](const Command& c) { return c.app->parsed(); });
  absl::Status status = RunCommand(*command, globals, app);
  if (status.ok() && !std::cout.flush())
    status = absl::InternalError("writing to standard output failed");
  if (!status.ok() && IsUnread(status)) return EndUnread();
  if (!status.ok()) SayError(status, *command, globals);
  return static_cast<int>(ExitCodeOf(status));
}

}  // namespace
}  // namespace phimap::cli

int main(int argc, char** argv) {
  // Switches off the check for lock cycles, which Debian's Abseil makes at every lock that gRPC
  // takes, as in a debug build.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Keeps freed memory. Answers of half a MiB are freed and allocated repeatedly, and returning
  // them to the system each time would cost 600,000 page faults in 500,000 rows of 8 KiB, a third
  // of the time.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  // Opens descriptors 0, 1 and 2 if they are closed. Otherwise gRPC would use these numbers for its
  // own files, and phimap would read or write those as the user's.
  while (true) {
    const int descriptor = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (descriptor > 2) close(descriptor);
    if (descriptor < 0 || descriptor > 2) break;
  }
  // Time between gRPC's checks, while it is idle, whether a connection is back. The default, 5
  // seconds, is longer than any wait before a retry.
  setenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "200", /*overwrite=*/0);
  // Lets a write to a pipe or socket without a reader fail with an error. A failed write of data
  // ends the command, which tidies up first; messages to a closed standard error are dropped.
  std::signal(SIGPIPE, SIG_IGN);
  return phimap::cli::Run(argc, argv);
}
