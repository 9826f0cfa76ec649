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
  // Given on the command line, where every user of this machine sees it.
  std::string token;
  // File whose first line is the token.
  std::string token_file;
};

// The token is that of --token, of --token_file, or of PHIMAP_TOKEN, the first that is given.
// Errors: NOT_FOUND for a token file that cannot be read, INVALID_ARGUMENT for one without a token.
absl::StatusOr<client::ConnectOptions> ToConnectOptions(const AccessArguments& arguments);

// Adds the flags to `phimap`. `access` outlives it.
void AddAccess(CLI::App& app, AccessArguments& access);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_ARGUMENTS_ACCESS_ARGUMENTS_H_
