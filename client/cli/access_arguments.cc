#include "client/cli/access_arguments.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

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
    return MakeError(absl::StatusCode::kInvalidArgument, "BAD_TOKEN_FILE", "--token_file",
                     absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  std::getline(file, line);
  absl::StripAsciiWhitespace(&line);
  if (!line.empty()) return line;
  return MakeError(absl::StatusCode::kInvalidArgument, "BAD_TOKEN_FILE", "--token_file",
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

}  // namespace phimap::cli
