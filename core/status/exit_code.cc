#include "core/status/exit_code.h"

#include <utility>

namespace phimap {

ExitCode ExitCodeOf(const absl::Status& status) {
  using Code = absl::StatusCode;
  // Any code that is not listed, including future ones, means failure.
  constexpr std::pair<Code, ExitCode> kMeanings[] = {
      {Code::kOk, ExitCode::kOk},
      {Code::kInvalidArgument, ExitCode::kBadInput},
      {Code::kOutOfRange, ExitCode::kBadInput},
      {Code::kNotFound, ExitCode::kNotFound},
      {Code::kUnavailable, ExitCode::kUnreachable},
      {Code::kFailedPrecondition, ExitCode::kRefused},
      {Code::kAlreadyExists, ExitCode::kRefused},
      {Code::kAborted, ExitCode::kRefused},
      {Code::kPermissionDenied, ExitCode::kRefused},
      {Code::kUnauthenticated, ExitCode::kRefused},
      {Code::kResourceExhausted, ExitCode::kRefused},
      {Code::kUnimplemented, ExitCode::kRefused},
      {Code::kDeadlineExceeded, ExitCode::kTimedOut},
      {Code::kCancelled, ExitCode::kInterrupted},
  };
  for (const auto& [code, meaning] : kMeanings) {
    if (code == status.code()) return meaning;
  }
  return ExitCode::kFailed;
}

}  // namespace phimap
