// `phimap admin`, for operators of a store. It contacts no server. It opens the store itself,
// whether or not servers are using it.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_ADMIN_COMMAND_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_ADMIN_COMMAND_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "client/cli/commands/command.h"
#include "client/cli/views/progress_bar.h"
#include "client/cpp/cancel_token.h"

namespace phimap::cli {

struct AdminArguments {
  // "check", "backup", "restore" or "gc".
  std::string action;
  // A data directory, or postgresql://…
  std::string store;
  // Folders: `to` is the destination of a backup, `from` the source of a restore.
  std::string to;
  std::string from;
  bool quarantine = false;
  bool skip_damaged = false;
  int64_t grace_seconds = 3600;
  bool json = false;
};

// Minimum grace time. With a shorter one, a server that is loading a version could find its
// artifact deleted.
inline constexpr int64_t kLeastGraceSeconds = 600;

// Prints the result as text or as one JSON object. A check that finds damage returns kDataLoss,
// after it has printed its report.
absl::Status RunAdmin(const AdminArguments& arguments, std::ostream& out, const Console& console,
                      client::CancelToken& cancel);

// `phimap admin` with its flags.
Command AddAdmin(CLI::App& app);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_ADMIN_COMMAND_H_
