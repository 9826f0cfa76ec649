#include "server/rpc/rpc_scope.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/rpc/grpc_status.h"

namespace phimap {
namespace {

absl::Time DeadlineOf(const grpc::CallbackServerContext& context) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  return absl::FromChrono(deadline);
}

// What went well is of interest to who debugs a client; what the client got wrong, to who runs the
// server; and what the server got wrong must be seen.
LogLevel LevelOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return LogLevel::kDebug;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss:
      return LogLevel::kError;
    default:
      return LogLevel::kInfo;
  }
}

}  // namespace

RpcScope::RpcScope(const grpc::CallbackServerContext& context, const MethodMetrics& method,
                   const Logger& logger)
    : context_(context),
      method_(method),
      logger_(logger),
      started_(absl::Now()),
      deadline_(DeadlineOf(context)) {
  method_.started->Increment();
}

grpc::Status RpcScope::Finish(const absl::Status& status) {
  const double seconds = absl::ToDoubleSeconds(absl::Now() - started_);
  method_.handled[static_cast<int>(status.code())]->Increment();
  method_.handling_seconds->Observe(seconds);
  const LogLevel level = LevelOf(status.code());
  if (logger_.Enabled(level)) {
    const LoggedError error = ErrorForLog(status);
    logger_.Log(level, "rpc",
                {{"method", method_.full_name},
                 {"code", std::string(CodeLabel(status.code()))},
                 {"reason", error.reason},
                 {"field", error.field},
                 {"seconds", absl::StrCat(seconds)},
                 {"peer", context_.peer()},
                 {"error", error.message}});
  }
  return ToGrpcStatus(status);
}

}  // namespace phimap
