// Contents and formats of a log line.
#ifndef PHIMAP_SERVER_OBSERVE_LOG_LINE_H_
#define PHIMAP_SERVER_OBSERVE_LOG_LINE_H_

#include <initializer_list>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace phimap {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat { kText, kJson };

// Parses "debug", "info", "warning", "error" or "off".
absl::StatusOr<LogLevel> ParseLogLevel(absl::string_view text);
// Parses "text" or "json".
absl::StatusOr<LogFormat> ParseLogFormat(absl::string_view text);

struct LogField {
  absl::string_view key;
  std::string value;
};

// Returns one line, including the newline. In text format, values are quoted if they contain other
// characters than letters, digits and a few signs. In JSON format, the line is one object whose
// first keys are time, level and event. All JSON values are strings, so a key never changes its
// type. Invalid UTF-8 becomes U+FFFD in JSON.
std::string FormatLogLine(absl::Time time, LogLevel level, absl::string_view event,
                          std::initializer_list<LogField> fields,
                          LogFormat format = LogFormat::kText);

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_LOG_LINE_H_
