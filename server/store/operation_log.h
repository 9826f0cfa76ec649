// The log of changes by operation id, which tells how a change ended whose answer was lost. Each
// change of a catalog adds its row in its own transaction, so that the row is there exactly if the
// change was made.
#ifndef PHIMAP_SERVER_STORE_OPERATION_LOG_H_
#define PHIMAP_SERVER_STORE_OPERATION_LOG_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/records.h"
#include "server/store/sql_database.h"

namespace phimap {

// A change of a catalog.
struct Operation {
  // Chosen by the caller, or NewOperationId().
  std::string id;
  // The change with its arguments, to recognise an id that is used for another change.
  std::string request;
  // The change in words, for errors: "version 3 of \"letters\" was deleted".
  std::string what;
};

// Returns a random id.
std::string NewOperationId();

// Cheap to make; must not outlive its session. Errors: those of the database.
class OperationLog {
 public:
  explicit OperationLog(SqlSession& session) : session_(session) {}

  // Returns the result of the change with this id, nullopt if it was not made. ALREADY_EXISTS
  // (OPERATION_ID_REUSED) if the id is that of another request.
  absl::StatusOr<std::optional<std::string>> Find(const Operation& operation);
  absl::StatusOr<bool> Contains(absl::string_view id);
  // REQUIRES: the log does not contain the id.
  absl::Status Add(const Operation& operation, absl::string_view outcome, absl::Time now);
  // Removes operations that ended more than kOperationRetention ago.
  absl::Status Prune(absl::Time now);

 private:
  SqlSession& session_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_OPERATION_LOG_H_
