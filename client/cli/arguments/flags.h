// Flags that several commands share: credentials and trust, durations, seeds, and the rows to read.
#ifndef PHIMAP_CLIENT_CLI_ARGUMENTS_FLAGS_H_
#define PHIMAP_CLIENT_CLI_ARGUMENTS_FLAGS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/arguments/input_rows.h"
#include "client/cpp/client.h"

namespace CLI {
class App;
}

namespace phimap::cli {

struct AccessArguments {
  client::TlsOptions tls;
  // The token on the command line, which every user of this machine can see.
  std::string token;
  // File whose first line is the token.
  std::string token_file;
};

// Returns the options for a connection. The token comes from --token, --token_file or PHIMAP_TOKEN,
// in this order. Error: INVALID_ARGUMENT for a token file that cannot be read or has no token on
// its first line.
absl::StatusOr<client::ConnectOptions> ToConnectOptions(const AccessArguments& arguments);

// Adds the flags to `phimap`. REQUIRES: `access` outlives `app`.
void AddAccess(CLI::App& app, AccessArguments& access);

inline constexpr char kTtlHelp[] =
    "Time for which the version lives after its last use, such as 12h or 7d (default: for ever)";

// Parses a number, which may have decimals, and its unit. The error is INVALID_ARGUMENT and
// mentions `flag`.
absl::StatusOr<absl::Duration> DurationOf(absl::string_view text, absl::string_view flag);

// Formats a duration as "7d", "36h" or "90s": in the largest unit without decimals, or in seconds.
// Pure.
std::string DurationArgumentText(absl::Duration duration);

// Parses an integer from 0 to 2^64 − 1; an error names --seed.
absl::StatusOr<uint64_t> SeedOf(const std::string& text);

inline constexpr char kLabelHelp[] = "Column of the CSV file that is not an input";
inline constexpr char kColumnsHelp[] =
    "Input columns by name, in this order, for a CSV file: x1,x2; or the number of columns, for an "
    "svmlight file (default: the version's columns, which the file must have in the same order)";

// Adds the flags to a command, after its other positional arguments. `label_help` explains --label
// for this command. `input` must outlive the command.
void AddInput(CLI::App& command, InputArguments& input, const char* label_help = kLabelHelp);
// Adds the flags that say which columns of the input are mapped, and which are copied.
void AddColumnFlags(CLI::App& command, InputArguments& input);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_ARGUMENTS_FLAGS_H_
