// One line of the log: when, how grave, which event, and its fields.
//
// Example:
//   2026-11-20T19:12:51.123Z INFO build_done mapping=letter rows=20000
//   {"time":"2026-11-20T19:12:51.123Z","level":"INFO","event":"build_done","mapping":"letter","rows":20000}
#ifndef PHIMAP_SERVER_OBSERVE_LOG_LINE_H_
#define PHIMAP_SERVER_OBSERVE_LOG_LINE_H_

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace phimap {

// Contents and formats of a log line.
enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat { kText, kJson };

// Parses "debug", "info", "warning", "error" or "off".
absl::StatusOr<LogLevel> ParseLogLevel(absl::string_view text);
// Parses "text" or "json".
absl::StatusOr<LogFormat> ParseLogFormat(absl::string_view text);

// The value of a field: a text, a number, true or false, or nothing. An empty text and a number
// that is not finite are nothing, because a reader of the log would have to know that they stand
// for it.
class LogValue {
 public:
  LogValue(std::nullopt_t) {}                                      // NOLINT: implicit, it is one
  LogValue(std::string text) : value_(std::move(text)) {}          // NOLINT
  LogValue(absl::string_view text) : value_(std::string(text)) {}  // NOLINT
  LogValue(const char* text) : value_(std::string(text)) {}        // NOLINT
  LogValue(bool truth) : value_(truth) {}                          // NOLINT
  LogValue(double number) : value_(number) {}                      // NOLINT
  template <std::integral Integer>
  LogValue(Integer number) : value_(static_cast<int64_t>(number)) {}  // NOLINT
  template <typename T>
  LogValue(const std::optional<T>& value)  // NOLINT
      : LogValue(value.has_value() ? LogValue(*value) : LogValue(std::nullopt)) {}

  bool empty() const;
  // The text; "" if the value is none.
  absl::string_view text() const;
  void AppendAsText(std::string& out) const;
  void AppendAsJson(std::string& out) const;

 private:
  std::variant<std::monostate, std::string, int64_t, double, bool> value_;
};

struct LogField {
  absl::string_view key;
  LogValue value;
};

// Returns one line, including the newline. Fields without a value are left out. In text format,
// values are quoted if they contain other characters than letters, digits and a few signs. In JSON
// format, the line is one object whose first keys are time, level and event; numbers are numbers of
// JSON, and invalid UTF-8 becomes U+FFFD. A key of an event has one type, which
// docs/operations/log.md states.
std::string FormatLogLine(absl::Time time, LogLevel level, absl::string_view event,
                          std::initializer_list<LogField> fields,
                          LogFormat format = LogFormat::kText);

// The parts of an error that may be logged; each is empty if the error has none. What rows hold
// must not come into the log. So the message is left out if its reason is one that tells values.
// Other messages about a request may quote what the client sent, such as a label, and have an
// ellipsis in place of each quoted text. Messages about this server (store, memory, shutdown),
// about names and about the caller's rights are whole.
struct LoggedError {
  std::string code;
  std::string reason;
  std::string field;
  std::string message;
};
LoggedError ErrorForLog(const absl::Status& error);

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_LOG_LINE_H_
