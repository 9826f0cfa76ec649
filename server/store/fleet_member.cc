#include "server/store/fleet_member.h"

#include <chrono>
#include <random>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/thread/start_thread.h"

namespace phimap {
namespace {

// Time for which the rows of servers that ended without a report are kept.
constexpr absl::Duration kForgotten = absl::Hours(24);

}  // namespace

absl::StatusOr<std::unique_ptr<FleetMember>> FleetMember::Join(
    std::shared_ptr<SqlDatabase> database, FleetServer server, absl::Duration period,
    std::function<void()> each_time) {
  auto member = absl::WrapUnique(
      new FleetMember(std::move(database), std::move(server), period, std::move(each_time)));
  const absl::Status first = member->Beat();
  if (!first.ok() && !absl::IsUnavailable(first)) return first;
  member->each_time_();
  member->thread_ = StartThread("the fleet", [raw = member.get()] { raw->Run(); });
  return member;
}

FleetMember::~FleetMember() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    stop_.NotifyAll();
  }
  thread_.join();
  database_
      ->WriteAside([this](SqlSession& session) {
        return session
            .Run("DELETE FROM servers WHERE server_id = $1", {absl::string_view(server_.id)})
            .status();
      })
      .IgnoreError();  // Without further reports the server counts as dead.
}

absl::Status FleetMember::Beat() {
  return database_->WriteAside([this](SqlSession& session) -> absl::Status {
    PHIMAP_RETURN_IF_ERROR(
        session
            .Run("DELETE FROM servers WHERE seen_time_us < (SELECT now_us FROM clock) - $1",
                 {absl::ToInt64Microseconds(kForgotten)})
            .status());
    return session
        .Run(
            "INSERT INTO servers (server_id, name, release, schema_version, artifact_format, "
            "arithmetic, start_time_us, seen_time_us) "
            "SELECT $1, $2, $3, CAST($4 AS BIGINT), CAST($5 AS BIGINT), CAST($6 AS BIGINT), "
            "now_us, now_us FROM clock WHERE true "
            "ON CONFLICT (server_id) DO UPDATE SET seen_time_us = excluded.seen_time_us",
            {absl::string_view(server_.id), absl::string_view(server_.name),
             absl::string_view(server_.release), server_.schema_version, server_.artifact_format,
             server_.arithmetic})
        .status();
  });
}

void FleetMember::Run() {
  while (true) {
    const auto next = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(period_);
    {
      MutexLock lock(&mutex_);
      while (!stopping_ && stop_.WaitUntil(&mutex_, next)) {
      }
      if (stopping_) return;
    }
    // The error is ignored, because callers that need the database report that it cannot be
    // reached.
    Beat().IgnoreError();
    each_time_();
  }
}

std::string NewServerId() {
  std::random_device device;
  return absl::StrFormat("%08x%08x", device(), device());
}

absl::Status CheckAllRead(SqlSession& session, int64_t artifact_format, int64_t arithmetic) {
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session.Run(
          "SELECT name, release, artifact_format, arithmetic FROM servers "
          "WHERE seen_time_us >= (SELECT now_us FROM clock) - $1 "
          "AND (artifact_format < $2 OR arithmetic < $3) ORDER BY name LIMIT 1",
          {absl::ToInt64Microseconds(FleetMember::kLifetime), artifact_format, arithmetic}));
  if (rows.empty()) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kFailedPrecondition, reason::kFleetTooOld, "",
      absl::StrCat("expected every server to read artifacts of format ", artifact_format,
                   " and arithmetic ", arithmetic, ", but ", rows.Text(0, 0), " (release ",
                   rows.Text(0, 1), ") reads format ", rows.Int(0, 2), " and arithmetic ",
                   rows.Int(0, 3), "; upgrade it first, or stop it and wait ",
                   absl::FormatDuration(FleetMember::kLifetime)),
      {{"server", rows.Text(0, 0)}, {"release", rows.Text(0, 1)}});
}

}  // namespace phimap
