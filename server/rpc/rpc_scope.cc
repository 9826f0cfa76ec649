#include "server/rpc/rpc_scope.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/check.h"
#include "server/rpc/caller.h"
#include "server/rpc/grpc_status.h"

namespace phimap {
namespace {

absl::Time DeadlineOf(const grpc::CallbackServerContext& context) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  return absl::FromChrono(deadline);
}

absl::Status Admission(const grpc::CallbackServerContext& context, const RpcMethod& method) {
  if (method.access->open()) return absl::OkStatus();
  return method.access->Admit(CallerOf(context, *method.access), method.metrics.full_name,
                              method.role);
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

RpcScope::RpcScope(const grpc::CallbackServerContext& context, const RpcMethod& method,
                   const Logger& logger)
    : context_(context),
      method_(method),
      logger_(logger),
      started_(absl::Now()),
      deadline_(DeadlineOf(context)),
      admission_(Admission(context, method)) {
  method_.metrics.started->Increment();
}

grpc::Status RpcScope::Finish(const absl::Status& outcome) {
  PHIMAP_CHECK(asked_);
  const absl::Status& status = admission_.ok() ? outcome : admission_;
  const double seconds = absl::ToDoubleSeconds(absl::Now() - started_);
  method_.metrics.Ended(status, seconds);
  const LogLevel level = LevelOf(status.code());
  if (logger_.Enabled(level)) {
    const LoggedError error = ErrorForLog(status);
    logger_.Log(level, "rpc",
                {{"method", method_.metrics.full_name},
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
