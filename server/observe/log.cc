#include "server/observe/log.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/error.h"

namespace phimap {
namespace {

const char* LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "DEBUG";
    case LogLevel::kInfo:
      return "INFO";
    case LogLevel::kWarning:
      return "WARNING";
    case LogLevel::kError:
      return "ERROR";
    case LogLevel::kOff:
      break;
  }
  return "OFF";
}

// Codes of what happens in this server, whoever asks. A list of what may pass, so that a code
// nobody thought of hides its message.
bool SpeaksOfTheServer(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
      return true;
    default:
      return false;
  }
}

std::string OrNone(absl::string_view text) { return text.empty() ? "none" : std::string(text); }

bool IsPlain(absl::string_view value) {
  if (value.empty()) return false;
  for (const char c : value) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("-_.:/@%+", c)) return false;
  }
  return true;
}

void WriteToStderr(absl::string_view line) {
  // A log that cannot be written is lost: there is no better place to say so.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

absl::StatusOr<LogLevel> ParseLogLevel(absl::string_view text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "info") return LogLevel::kInfo;
  if (text == "warning") return LogLevel::kWarning;
  if (text == "error") return LogLevel::kError;
  if (text == "off") return LogLevel::kOff;
  return MakeError(absl::StatusCode::kInvalidArgument, "BAD_FLAG", "log_level",
                   absl::StrCat("expected debug, info, warning, error or off, got \"", text, "\""));
}

std::string FormatLogLine(absl::Time time, LogLevel level, absl::string_view event,
                          std::initializer_list<LogField> fields) {
  std::string line =
      absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone()), " ",
                   LevelName(level), " ", event);
  for (const LogField& field : fields) {
    absl::StrAppend(&line, " ", field.key, "=");
    if (IsPlain(field.value)) {
      absl::StrAppend(&line, field.value);
    } else {
      absl::StrAppend(&line, "\"", absl::Utf8SafeCEscape(field.value), "\"");
    }
  }
  line.push_back('\n');
  return line;
}

LoggedError ErrorForLog(const absl::Status& error) {
  const ErrorDetail detail = DetailOf(error).value_or(ErrorDetail());
  // A field names a part of the request, whatever the code: DATA_LOSS of the store has none, that
  // of a row count has.
  const bool tell = detail.field.empty() && SpeaksOfTheServer(error.code());
  return {absl::StatusCodeToString(error.code()), OrNone(detail.reason), OrNone(detail.field),
          OrNone(tell ? error.message() : absl::string_view())};
}

Logger::Logger(LogLevel level) : Logger(level, WriteToStderr) {}

Logger::Logger(LogLevel level, Sink sink) : level_(level), sink_(std::move(sink)) {}

void Logger::Log(LogLevel level, absl::string_view event,
                 std::initializer_list<LogField> fields) const {
  if (Enabled(level)) sink_(FormatLogLine(absl::Now(), level, event, fields));
}

}  // namespace phimap
