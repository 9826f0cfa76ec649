#include "client/cli/arguments/flags.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status/command_line.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file.is_open()) {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kTokenFileInvalid, "--token_file",
                     absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  std::getline(file, line);
  absl::StripAsciiWhitespace(&line);
  if (!line.empty()) return line;
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kTokenFileInvalid, "--token_file",
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

namespace {

struct TimeUnit {
  char letter;
  absl::Duration length;
};

// Units for printing, the largest first. Weeks can be parsed but are never printed, because people
// count days.
constexpr TimeUnit kTimeUnits[] = {{'d', absl::Hours(24)},
                                   {'h', absl::Hours(1)},
                                   {'m', absl::Minutes(1)},
                                   {'s', absl::Seconds(1)}};
constexpr TimeUnit kWeek{'w', absl::Hours(7 * 24)};
// Largest number of seconds that is accepted: above every limit of the server, and within the range
// of absl::Duration.
constexpr double kMostSeconds = 1e12;

absl::Duration UnitOf(char letter) {
  if (letter == kWeek.letter) return kWeek.length;
  const auto* const unit =
      std::find_if(std::begin(kTimeUnits), std::end(kTimeUnits),
                   [letter](const TimeUnit& known) { return known.letter == letter; });
  return unit == std::end(kTimeUnits) ? absl::ZeroDuration() : unit->length;
}

bool IsNumberByte(char c) { return absl::ascii_isdigit(c) || c == '.'; }

}  // namespace

absl::StatusOr<absl::Duration> DurationOf(absl::string_view text, absl::string_view flag) {
  double number = 0;
  const absl::Duration unit = text.empty() ? absl::ZeroDuration() : UnitOf(text.back());
  const absl::string_view digits = text.substr(0, text.empty() ? 0 : text.size() - 1);
  // Allows only digits and a point, because SimpleAtod would also accept signs, spaces and words.
  if (unit > absl::ZeroDuration() && std::all_of(digits.begin(), digits.end(), IsNumberByte) &&
      absl::SimpleAtod(digits, &number) && number * absl::ToDoubleSeconds(unit) <= kMostSeconds) {
    return number * unit;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      flag, ": expected a number and a unit s, m, h, d or w, such as 12h or 7d; got '", text, "'"));
}

std::string DurationArgumentText(absl::Duration duration) {
  for (const TimeUnit& unit : kTimeUnits) {
    if (duration >= unit.length && duration % unit.length == absl::ZeroDuration()) {
      return absl::StrCat(duration / unit.length, std::string(1, unit.letter));
    }
  }
  return absl::StrCat(absl::ToDoubleSeconds(duration), "s");
}

absl::StatusOr<uint64_t> SeedOf(const std::string& text) {
  uint64_t seed = 0;
  if (absl::SimpleAtoi(text, &seed)) return seed;
  return absl::InvalidArgumentError(absl::StrCat("--seed: expected an integer from 0 to ",
                                                 std::numeric_limits<uint64_t>::max(), ", got '",
                                                 text, "'"));
}

void AddInput(CLI::App& command, InputArguments& input, const char* label_help) {
  // Each --input takes exactly one value, because the word after it may be the NAME.
  command
      .add_option(
          "--input", input.paths,
          "File of rows; its extension determines the format: csv, tsv, npy, svmlight or txt (one "
          "text per line). Files compressed by gzip or zstd are decompressed. Several files, and "
          "patterns such as 'day-*.csv.gz', form one stream. - is standard input and needs "
          "--format")
      ->allow_extra_args(false);
  command.add_option("FILE", input.more_paths, "Short for --input=FILE");
  command
      .add_option("--format", input.format,
                  "Format of the input: csv (with a header), npy, svmlight (sparse rows), or text "
                  "(one per line, for kernels of strings)")
      ->check(OneOf({"csv", "npy", "svmlight", "text"}));
  command.add_option("--delimiter", input.delimiter,
                     "Delimiter of the cells of a CSV file, such as ';' or tab (default: a comma, "
                     "or a tab in files named .tsv)");
  command.add_option("--text", input.text, "Column of the CSV file whose texts are the examples");
  command.add_option("--label", input.choice.label, label_help);
  command
      .add_option("--exclude", input.choice.exclude,
                  "Column of the CSV file that is not an input; may be repeated")
      ->allow_extra_args(false);
  command.add_flag("--zero-based", input.zero_based,
                   "The indices of an svmlight file begin with 0 instead of 1");
}

void AddColumnFlags(CLI::App& command, InputArguments& input) {
  command.add_flag("--by-name", input.choice.by_name,
                   "Find the version's columns in the CSV file by name, in any order");
  command.add_option("--columns", input.columns_given, kColumnsHelp)
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--passthrough", input.choice.passthrough,
                  "Column of the CSV file, such as an id, that is copied unchanged to the output, "
                  "which cannot be npy; may be repeated")
      ->allow_extra_args(false);
}

}  // namespace phimap::cli
