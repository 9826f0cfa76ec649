#include "server/start_failure.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "core/status/error.h"
#include "server/config_file.h"

namespace phimap {

namespace {

// Returns what is asked of a setting, by the command line or else by the environment.
std::string Asked(const std::string& setting, int argc, const char* const* argv) {
  const char* const variable =
      std::getenv(absl::StrCat("PHIMAPD_", absl::AsciiStrToUpper(setting)).c_str());
  std::string asked = variable == nullptr ? "" : variable;
  const std::string flag = absl::StrCat("--", setting);
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, absl::StrCat(flag, "="))) asked = std::string(argument);
    if (argument == flag && i + 1 < argc) asked = argv[i + 1];
  }
  return asked;
}

}  // namespace

LogFormat AskedLogFormat(int argc, const char* const* argv) {
  std::string asked = Asked("log_format", argc, argv);
  if (asked.empty()) {
    const absl::StatusOr<std::vector<ConfigEntry>> file =
        ReadConfigFile(Asked("config", argc, argv));
    for (const ConfigEntry& entry : file.value_or(std::vector<ConfigEntry>())) {
      if (entry.key == "log_format" && entry.values.size() == 1) asked = entry.values.front();
    }
  }
  return ParseLogFormat(asked).value_or(LogFormat::kText);
}

int FailToStart(LogFormat format, ServerExitCode exit_code, absl::string_view what,
                const absl::Status& why) {
  const int number = static_cast<int>(exit_code);
  const std::string message = absl::StrCat(what, what.empty() ? "" : ": ", why.message());
  const ErrorDetail detail = DetailOf(why).value_or(ErrorDetail());
  const std::string line = format == LogFormat::kText
                               ? absl::StrCat("phimapd: ", message, "\n")
                               : FormatLogLine(absl::Now(), LogLevel::kError, "start_failed",
                                               {{"code", absl::StatusCodeToString(why.code())},
                                                {"reason", detail.reason},
                                                {"field", detail.field},
                                                {"exit_code", number},
                                                {"error", message}},
                                               format);
  std::fputs(line.c_str(), stderr);
  return number;
}

}  // namespace phimap
