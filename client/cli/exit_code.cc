#include "client/cli/exit_code.h"

namespace phimap::cli {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return ExitCode::kBadInput;
    case absl::StatusCode::kNotFound:
      return ExitCode::kNotFound;
    case absl::StatusCode::kUnavailable:
      return ExitCode::kUnreachable;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnimplemented:
      return ExitCode::kRefused;
    case absl::StatusCode::kDeadlineExceeded:
      return ExitCode::kTimedOut;
    case absl::StatusCode::kCancelled:
      return ExitCode::kInterrupted;
    default:
      return ExitCode::kFailed;
  }
}

std::string ExitCodeHelp() {
  return "Exit codes:\n"
         "  0    done\n"
         "  1    failed: damaged data, a full disk, or a bug\n"
         "  2    wrong usage or bad input; the message names the place\n"
         "  3    no such mapping, version or alias\n"
         "  4    the server cannot be reached\n"
         "  5    the server refused: a precondition, a limit, a permission, or not implemented\n"
         "  6    out of time\n"
         "  130  interrupted or cancelled\n";
}

}  // namespace phimap::cli
