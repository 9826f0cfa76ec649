#include "server/observe/log.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/error.h"

namespace phimap {
namespace {

// Returns whether an error with this code is about the state of this server, independent of the
// caller. Only then is the error's message logged. The codes are listed here one by one, so the
// message of an error with an unexpected code is not logged.
bool SpeaksOfTheServer(absl::StatusCode code) {
  using Code = absl::StatusCode;
  constexpr Code kCodes[] = {Code::kInternal,          Code::kUnknown,  Code::kUnavailable,
                             Code::kResourceExhausted, Code::kDataLoss, Code::kCancelled,
                             Code::kDeadlineExceeded};
  return std::find(std::begin(kCodes), std::end(kCodes), code) != std::end(kCodes);
}

std::string OrNone(absl::string_view text) { return text.empty() ? "none" : std::string(text); }

// Returns null if nothing would be written.
std::unique_ptr<LogWriter> WriterToStderr(LogLevel level, LogFormat format) {
  if (level == LogLevel::kOff) return nullptr;
  return std::make_unique<LogWriter>(STDERR_FILENO, [format](absl::string_view reason,
                                                             int64_t count) {
    return FormatLogLine(absl::Now(), LogLevel::kWarning, "log_lines_dropped",
                         {{"reason", std::string(reason)}, {"count", absl::StrCat(count)}}, format);
  });
}

}  // namespace

LoggedError ErrorForLog(const absl::Status& error) {
  const ErrorDetail detail = DetailOf(error).value_or(ErrorDetail());
  // A field means that the error is about the request, whatever its code. For example, DATA_LOSS
  // has no field if it comes from the store, but has one if it is about a row count.
  const bool tell = detail.field.empty() && SpeaksOfTheServer(error.code());
  return {absl::StatusCodeToString(error.code()), OrNone(detail.reason), OrNone(detail.field),
          OrNone(tell ? error.message() : absl::string_view())};
}

Logger::Logger(LogLevel level, LogFormat format)
    : level_(level),
      format_(format),
      writer_(WriterToStderr(level, format)),
      rate_(writer_ == nullptr ? nullptr : std::make_unique<LogRate>()) {}

Logger::Logger(LogLevel level, Sink sink) : level_(level), sink_(std::move(sink)) {}

void Logger::Log(LogLevel level, absl::string_view event,
                 std::initializer_list<LogField> fields) const {
  if (!Enabled(level)) return;
  if (sink_) return sink_(FormatLogLine(absl::Now(), level, event, fields));
  if (writer_ == nullptr) return;
  if (!rate_->Admit(level, event, LogRate::Clock::now())) return writer_->DropForRate();
  writer_->Write(FormatLogLine(absl::Now(), level, event, fields, format_));
}

LogDrops Logger::drops() const { return writer_ == nullptr ? LogDrops() : writer_->drops(); }

}  // namespace phimap
