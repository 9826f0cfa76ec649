// Command-line options for credentials and trust.
#ifndef PHIMAP_CLIENT_CLI_ARGUMENTS_ACCESS_ARGUMENTS_H_
#define PHIMAP_CLIENT_CLI_ARGUMENTS_ACCESS_ARGUMENTS_H_

#include <string>

#include "absl/status/statusor.h"
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

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_ARGUMENTS_ACCESS_ARGUMENTS_H_
