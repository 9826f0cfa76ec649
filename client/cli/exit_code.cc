#include "client/cli/exit_code.h"

#include <utility>

namespace phimap::cli {

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

std::string ExitCodeHelp() {
  return "Exit codes:\n  0    done\n  1    failed: damaged data, a full disk, or a bug\n  2    "
         "wrong usage or bad input; the message names the place\n  3    no such mapping, version "
         "or alias\n  4    the server cannot be reached\n  5    the server refused: a "
         "precondition, a limit, a permission, or not implemented\n  6    timed out\n  130  "
         "interrupted or cancelled\n";
}

}  // namespace phimap::cli
