#include "client/cli/arguments/access_arguments.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file.is_open()) {
    return MakeError(absl::StatusCode::kInvalidArgument, "TOKEN_FILE_INVALID", "--token_file",
                     absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  std::getline(file, line);
  absl::StripAsciiWhitespace(&line);
  if (!line.empty()) return line;
  return MakeError(absl::StatusCode::kInvalidArgument, "TOKEN_FILE_INVALID", "--token_file",
                   absl::StrCat("expected a token on the first line of ", path));
}

absl::StatusOr<std::string> TokenOf(const AccessArguments& arguments) {
  if (!arguments.token.empty()) return arguments.token;
  if (!arguments.token_file.empty()) return ReadToken(arguments.token_file);
  const char* const token = std::getenv("PHIMAP_TOKEN");
  return std::string(token == nullptr ? "" : token);
}

}  // namespace

absl::StatusOr<client::ConnectOptions> ToConnectOptions(const AccessArguments& arguments) {
  client::ConnectOptions options;
  options.tls = arguments.tls;
  PHIMAP_ASSIGN_OR_RETURN(options.token, TokenOf(arguments));
  return options;
}

void AddAccess(CLI::App& app, AccessArguments& access) {
  app.add_option("--tls_ca", access.tls.ca_file,
                 "Connect with TLS to a server whose TLS certificate is signed by one of these "
                 "authorities (PEM)")
      ->envname("PHIMAP_TLS_CA");
  app.add_option("--tls_certificate", access.tls.certificate_file,
                 "TLS certificate of this client (PEM), for a server that requires one")
      ->envname("PHIMAP_TLS_CERTIFICATE");
  app.add_option("--tls_key", access.tls.key_file, "Private key of --tls_certificate (PEM)")
      ->envname("PHIMAP_TLS_KEY");
  app.add_option("--tls_server_name", access.tls.server_name,
                 "Host name in the server's TLS certificate, if it is not the HOST of --server")
      ->envname("PHIMAP_TLS_SERVER_NAME");
  CLI::Option* const file = app.add_option("--token_file", access.token_file,
                                           "File whose first line is the caller's token");
  app.add_option("--token", access.token,
                 "The caller's token, visible to every user of this machine; prefer --token_file, "
                 "or PHIMAP_TOKEN in the environment")
      ->excludes(file);
}

}  // namespace phimap::cli
