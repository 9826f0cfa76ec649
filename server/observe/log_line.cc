#include "server/observe/log_line.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/utf8.h"

namespace phimap {
namespace {

constexpr absl::string_view kReplacementCharacter = "\xEF\xBF\xBD";

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

bool IsPlain(absl::string_view value) {
  if (value.empty()) return false;
  for (const char c : value) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("-_.:/@%+", c)) return false;
  }
  return true;
}

void AppendJsonText(absl::string_view text, std::string& out) {
  out.push_back('"');
  while (!text.empty()) {
    const absl::string_view before = text;
    const uint32_t character = TakeUtf8Character(text);
    if (character == kNoCharacter) {
      // Skips only one byte of an invalid character, wherever the decoder stopped.
      text = before.substr(1);
      absl::StrAppend(&out, kReplacementCharacter);
    } else if (character < 0x20) {
      absl::StrAppend(&out, "\\u", absl::Hex(character, absl::kZeroPad4));
    } else {
      if (character == '"' || character == '\\') out.push_back('\\');
      out.append(before.data(), before.size() - text.size());
    }
  }
  out.push_back('"');
}

void AppendJsonField(absl::string_view key, absl::string_view value, std::string& out) {
  out.push_back(out.empty() ? '{' : ',');
  AppendJsonText(key, out);
  out.push_back(':');
  AppendJsonText(value, out);
}

}  // namespace

absl::StatusOr<LogLevel> ParseLogLevel(absl::string_view text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "info") return LogLevel::kInfo;
  if (text == "warning") return LogLevel::kWarning;
  if (text == "error") return LogLevel::kError;
  if (text == "off") return LogLevel::kOff;
  return MakeError(absl::StatusCode::kInvalidArgument, "FLAG_INVALID", "log_level",
                   absl::StrCat("expected debug, info, warning, error or off, got \"", text, "\""));
}

absl::StatusOr<LogFormat> ParseLogFormat(absl::string_view text) {
  if (text == "text") return LogFormat::kText;
  if (text == "json") return LogFormat::kJson;
  return MakeError(absl::StatusCode::kInvalidArgument, "FLAG_INVALID", "log_format",
                   absl::StrCat("expected text or json, got \"", text, "\""));
}

std::string FormatLogLine(absl::Time time, LogLevel level, absl::string_view event,
                          std::initializer_list<LogField> fields, LogFormat format) {
  const std::string when = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
  std::string line;
  if (format == LogFormat::kJson) {
    AppendJsonField("time", when, line);
    AppendJsonField("level", LevelName(level), line);
    AppendJsonField("event", event, line);
    for (const LogField& field : fields) AppendJsonField(field.key, field.value, line);
    line.append("}\n");
    return line;
  }
  absl::StrAppend(&line, when, " ", LevelName(level), " ", event);
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

}  // namespace phimap
