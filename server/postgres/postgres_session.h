// Transactions on PostgreSQL: the statements that begin them, and the statements in them.
#ifndef PHIMAP_SERVER_POSTGRES_POSTGRES_SESSION_H_
#define PHIMAP_SERVER_POSTGRES_POSTGRES_SESSION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/postgres/postgres_connection.h"
#include "server/store/sql_database.h"

namespace phimap {

// An open transaction. After a statement has failed, PostgreSQL runs no further statement of the
// transaction; each further call returns the same error.
class PostgresSession final : public SqlSession {
 public:
  explicit PostgresSession(PostgresConnection* connection) : connection_(connection) {}

  absl::StatusOr<SqlRows> Run(absl::string_view statement,
                              absl::Span<const SqlValue> values = {}) override;
  // Like PostgresConnection::RunBinary.
  absl::StatusOr<SqlRows> RunBinary(absl::string_view statement,
                                    absl::Span<const PostgresValue> values);
  // The first error of a statement; OK if there was none.
  const absl::Status& failure() const { return failure_; }

 private:
  absl::StatusOr<SqlRows> Noted(absl::StatusOr<SqlRows> rows);

  PostgresConnection* const connection_;
  absl::Status failure_;
};

// Return the statements that begin a transaction, to be run in one round trip. Settings last for
// the transaction, so that a pooler may give the connection to another client afterwards.
std::string BeginRead(const PostgresTimeouts& timeouts);
std::string BeginWrite(const PostgresTimeouts& timeouts);

}  // namespace phimap

#endif  // PHIMAP_SERVER_POSTGRES_POSTGRES_SESSION_H_
