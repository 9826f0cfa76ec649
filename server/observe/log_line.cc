#include "server/observe/log_line.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "server/observe/json_text.h"

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

bool IsPlain(absl::string_view value) {
  if (value.empty()) return false;
  for (const char c : value) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("-_.:/@%+", c)) return false;
  }
  return true;
}

void AppendJsonField(absl::string_view key, const LogValue& value, std::string& out) {
  if (value.empty()) return;
  out.push_back(out.empty() ? '{' : ',');
  AppendJsonText(key, out);
  out.push_back(':');
  value.AppendAsJson(out);
}

}  // namespace

absl::StatusOr<LogLevel> ParseLogLevel(absl::string_view text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "info") return LogLevel::kInfo;
  if (text == "warning") return LogLevel::kWarning;
  if (text == "error") return LogLevel::kError;
  if (text == "off") return LogLevel::kOff;
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kFlagInvalid, "log_level",
                   absl::StrCat("expected debug, info, warning, error or off, got \"", text, "\""));
}

absl::StatusOr<LogFormat> ParseLogFormat(absl::string_view text) {
  if (text == "text") return LogFormat::kText;
  if (text == "json") return LogFormat::kJson;
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kFlagInvalid, "log_format",
                   absl::StrCat("expected text or json, got \"", text, "\""));
}

absl::string_view LogValue::text() const {
  const std::string* const text = std::get_if<std::string>(&value_);
  return text == nullptr ? absl::string_view() : *text;
}

bool LogValue::empty() const {
  if (const auto* const text = std::get_if<std::string>(&value_)) return text->empty();
  if (const auto* const number = std::get_if<double>(&value_)) return !std::isfinite(*number);
  return std::holds_alternative<std::monostate>(value_);
}

void LogValue::AppendAsText(std::string& out) const {
  const auto* const text = std::get_if<std::string>(&value_);
  if (text == nullptr) return AppendAsJson(out);
  if (IsPlain(*text)) {
    out.append(*text);
  } else {
    absl::StrAppend(&out, "\"", absl::Utf8SafeCEscape(*text), "\"");
  }
}

void LogValue::AppendAsJson(std::string& out) const {
  if (const auto* const text = std::get_if<std::string>(&value_)) AppendJsonText(*text, out);
  if (const auto* const number = std::get_if<int64_t>(&value_)) absl::StrAppend(&out, *number);
  if (const auto* const number = std::get_if<double>(&value_)) absl::StrAppend(&out, *number);
  if (const auto* const truth = std::get_if<bool>(&value_)) out.append(*truth ? "true" : "false");
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
    if (field.value.empty()) continue;
    absl::StrAppend(&line, " ", field.key, "=");
    field.value.AppendAsText(line);
  }
  line.push_back('\n');
  return line;
}

namespace {

using Code = absl::StatusCode;

template <size_t count>
bool IsOneOf(Code code, const Code (&codes)[count]) {
  return std::find(std::begin(codes), std::end(codes), code) != std::end(codes);
}

// Returns whether an error with this code is about the state of this server, unless it has a field,
// which makes it one about the request. For example, DATA_LOSS has no field if it comes from the
// store, but has one if it is about a row count. The codes are listed one by one, so an error with
// an unexpected code counts as one about the request.
bool SpeaksOfTheServer(Code code) {
  constexpr Code kCodes[] = {Code::kInternal,          Code::kUnknown,  Code::kUnavailable,
                             Code::kResourceExhausted, Code::kDataLoss, Code::kCancelled,
                             Code::kDeadlineExceeded};
  return IsOneOf(code, kCodes);
}

// Returns whether the message of an error quotes no more than names, which are in the store or
// could be. A path that nothing is served at is any text.
bool SpeaksOfNames(Code code, absl::string_view reason) {
  constexpr Code kCodes[] = {Code::kNotFound, Code::kAlreadyExists, Code::kAborted,
                             Code::kPermissionDenied, Code::kUnauthenticated};
  return IsOneOf(code, kCodes) && reason != reason::kMethodUnknown;
}

// Returns the message with an ellipsis in place of each text that Quoted() put in quotes.
std::string WithoutQuotes(absl::string_view message) {
  std::string out;
  bool quoted = false;
  for (size_t i = 0; i < message.size(); ++i) {
    if (message[i] == '"') {
      out += quoted ? "…\"" : "\"";
      quoted = !quoted;
    } else if (!quoted) {
      out.push_back(message[i]);
    } else if (message[i] == '\\') {
      ++i;  // an escaped character, such as a quotation mark
    }
  }
  return out;
}

// A field may have a client's text in it: the name of a field that no request has.
constexpr size_t kMaxFieldBytes = 100;

// Returns whether messages of this reason tell what rows hold, or what was computed from them, and
// not only in quotation marks.
bool TellsValues(absl::string_view reason) {
  constexpr absl::string_view kReasons[] = {
      reason::kRequestMalformed,      reason::kValueNotFinite,
      reason::kValueNotRepresentable, reason::kValuesTooLarge,
      reason::kValuesTooSmall,        reason::kKernelNotPositiveSemidefinite,
      reason::kKernelNotSymmetric,    reason::kKernelServiceAnswerInvalid};
  return std::find(std::begin(kReasons), std::end(kReasons), reason) != std::end(kReasons);
}

std::string MessageForLog(const absl::Status& error, const ErrorDetail& detail) {
  if (TellsValues(detail.reason)) return "";
  const bool is_told = SpeaksOfNames(error.code(), detail.reason) ||
                       (detail.field.empty() && SpeaksOfTheServer(error.code()));
  return is_told ? std::string(error.message()) : WithoutQuotes(error.message());
}

}  // namespace

LoggedError ErrorForLog(const absl::Status& error) {
  if (error.ok()) return {"OK", "", "", ""};
  const ErrorDetail detail = DetailOf(error).value_or(ErrorDetail());
  return {absl::StatusCodeToString(error.code()), detail.reason,
          detail.field.substr(0, kMaxFieldBytes), MessageForLog(error, detail)};
}

}  // namespace phimap
