#include "server/postgres/postgres_session.h"

#include "absl/strings/str_cat.h"

namespace phimap {
namespace {

std::string LocalSettings(const PostgresTimeouts& timeouts) {
  return absl::StrCat("SET LOCAL search_path = phimap, pg_catalog; SET LOCAL statement_timeout = ",
                      absl::ToInt64Milliseconds(timeouts.statement),
                      "; SET LOCAL lock_timeout = ", absl::ToInt64Milliseconds(timeouts.lock),
                      "; SET LOCAL idle_in_transaction_session_timeout = ",
                      absl::ToInt64Milliseconds(timeouts.idle_in_transaction), ";");
}

}  // namespace

absl::StatusOr<SqlRows> PostgresSession::Run(absl::string_view statement,
                                             absl::Span<const SqlValue> values) {
  if (!failure_.ok()) return failure_;
  return Noted(connection_->Run(statement, values));
}

absl::StatusOr<SqlRows> PostgresSession::RunBinary(absl::string_view statement,
                                                   absl::Span<const PostgresValue> values) {
  if (!failure_.ok()) return failure_;
  return Noted(connection_->RunBinary(statement, values));
}

absl::StatusOr<SqlRows> PostgresSession::Noted(absl::StatusOr<SqlRows> rows) {
  if (!rows.ok()) failure_ = rows.status();
  return rows;
}

std::string BeginRead(const PostgresTimeouts& timeouts) {
  return absl::StrCat("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ", LocalSettings(timeouts));
}

std::string BeginWrite(const PostgresTimeouts& timeouts) {
  // Keeps remote_apply, which is stricter than `on`, and replaces every weaker setting by `on`.
  return absl::StrCat("BEGIN ISOLATION LEVEL READ COMMITTED; ", LocalSettings(timeouts),
                      " SELECT set_config('synchronous_commit', CASE current_setting("
                      "'synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' "
                      "END, true);");
}

}  // namespace phimap
