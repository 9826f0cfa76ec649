#include "server/admin/store_hold.h"

#include <random>

#include "absl/memory/memory.h"
#include "absl/strings/str_format.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/sync/steady_time.h"

namespace phimap {
namespace {

constexpr absl::Duration kRenewEvery = absl::Minutes(1);

std::string RandomId() {
  std::random_device device;
  return absl::StrFormat("%08x%08x", device(), device());
}

}  // namespace

absl::StatusOr<std::unique_ptr<StoreHold>> StoreHold::Take(std::shared_ptr<SqlDatabase> database,
                                                           std::string holder) {
  auto hold = absl::WrapUnique(new StoreHold(std::move(database), RandomId(), std::move(holder)));
  // Uses Write, not WriteAside: the transactions that collect garbage are also Writes, which run
  // one after another, and each of them checks for holds.
  PHIMAP_RETURN_IF_ERROR(hold->database_->Write(
      [&](SqlSession& session) -> absl::Status {
        PHIMAP_RETURN_IF_ERROR(
            session.Run("DELETE FROM holds WHERE end_time_us <= (SELECT now_us FROM clock)")
                .status());
        return session
            .Run(
                "INSERT INTO holds (hold_id, holder, end_time_us) "
                "SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), now_us + $3 FROM clock",
                {absl::string_view(hold->id_), absl::string_view(hold->holder_),
                 absl::ToInt64Microseconds(kLifetime)})
            .status();
      },
      [&](SqlSession& session) -> absl::StatusOr<bool> {
        PHIMAP_ASSIGN_OR_RETURN(
            const SqlRows found,
            session.Run("SELECT 1 FROM holds WHERE hold_id = $1", {absl::string_view(hold->id_)}));
        return !found.empty();
      },
      "a hold was taken"));
  return hold;
}

StoreHold::~StoreHold() {
  database_
      ->WriteAside([this](SqlSession& session) {
        return session.Run("DELETE FROM holds WHERE hold_id = $1", {absl::string_view(id_)})
            .status();
      })
      .IgnoreError();  // If this fails, the hold expires by itself.
}

absl::Status StoreHold::Renew() {
  if (SteadyNow() - renewed_ < kRenewEvery) return absl::OkStatus();
  bool held = false;
  PHIMAP_RETURN_IF_ERROR(database_->WriteAside([&](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(
        const SqlRows renewed,
        session.Run("UPDATE holds SET end_time_us = (SELECT now_us FROM clock) + $1 "
                    "WHERE hold_id = $2 AND end_time_us > (SELECT now_us FROM clock) "
                    "RETURNING hold_id",
                    {absl::ToInt64Microseconds(kLifetime), absl::string_view(id_)}));
    held = !renewed.empty();
    return absl::OkStatus();
  }));
  if (!held) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "HOLD_LOST", "store",
                     "this program was stopped for so long that garbage may have been collected "
                     "meanwhile; begin again");
  }
  renewed_ = SteadyNow();
  return absl::OkStatus();
}

}  // namespace phimap
