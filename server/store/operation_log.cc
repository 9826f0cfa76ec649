#include "server/store/operation_log.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {

std::string NewOperationId() {
  std::random_device device;
  return absl::StrFormat("%08x%08x%08x%08x", device(), device(), device(), device());
}

absl::StatusOr<std::optional<std::string>> OperationLog::Find(const Operation& operation) {
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session_.Run("SELECT request, outcome FROM operations WHERE operation_id = $1",
                   {operation.id}));
  if (rows.empty()) return std::nullopt;
  if (rows.Text(0, 0) == operation.request) return rows.Text(0, 1);
  return MakeError(absl::StatusCode::kAlreadyExists, "OPERATION_ID_REUSED", "operation_id",
                   absl::StrCat("operation ", operation.id, " was another request: ",
                                rows.Text(0, 0), "; send each change with an id of its own"),
                   {{"operation_id", operation.id}});
}

absl::StatusOr<bool> OperationLog::Contains(absl::string_view id) {
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows,
                          session_.Run("SELECT 1 FROM operations WHERE operation_id = $1", {id}));
  return !rows.empty();
}

absl::Status OperationLog::Add(const Operation& operation, absl::string_view outcome,
                               absl::Time now) {
  return session_
      .Run(
          "INSERT INTO operations (operation_id, request, outcome, end_time_us) "
          "VALUES ($1, $2, $3, $4)",
          {operation.id, operation.request, outcome, absl::ToUnixMicros(now)})
      .status();
}

absl::Status OperationLog::Prune(absl::Time now) {
  return session_
      .Run("DELETE FROM operations WHERE end_time_us < $1",
           {absl::ToUnixMicros(now - kOperationRetention)})
      .status();
}

}  // namespace phimap
