#include "server/store/version_expiry.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// SQL condition on a row of `versions`: it has expired at time $1. The first comparison uses the
// index on versions with a ttl.
constexpr char kIsExpired[] =
    "expire_time_us > 0 AND expire_time_us <= $1 AND NOT EXISTS "
    "(SELECT 1 FROM aliases a WHERE a.mapping = versions.mapping AND "
    "(a.version = versions.number OR a.previous_version = versions.number))";

std::vector<VersionName> NamesIn(const SqlRows& rows) {
  std::vector<VersionName> names;
  names.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) names.push_back({rows.Text(i, 0), rows.Int(i, 1)});
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

absl::Status VersionExpiry::SetTtl(absl::string_view mapping, int64_t number, absl::Duration ttl,
                                   absl::Time now) {
  const bool expires = ttl != absl::InfiniteDuration();
  return session_
      .Run(
          "UPDATE versions SET ttl_us = $1, expire_time_us = $2 "
          "WHERE mapping = $3 AND number = $4",
          {expires ? absl::ToInt64Microseconds(ttl) : 0,
           expires ? absl::ToUnixMicros(now + ttl) : 0, mapping, number})
      .status();
}

absl::Status VersionExpiry::Use(absl::string_view mapping, int64_t number, absl::Time now) {
  // Clocks of servers differ a little, so the condition ensures that a use never brings the expiry
  // nearer.
  return session_
      .Run(
          "UPDATE versions SET expire_time_us = ttl_us + $1 "
          "WHERE mapping = $2 AND number = $3 AND ttl_us > 0 AND expire_time_us < ttl_us + $1",
          {absl::ToUnixMicros(now), mapping, number})
      .status();
}

absl::Status VersionExpiry::UseAll(absl::Time now) {
  return session_
      .Run("UPDATE versions SET expire_time_us = ttl_us + $1 WHERE ttl_us > 0",
           {absl::ToUnixMicros(now)})
      .status();
}

absl::StatusOr<std::vector<VersionName>> VersionExpiry::WorthRecording(absl::Time now) {
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session_.Run(absl::StrCat("SELECT mapping, number FROM versions WHERE expire_time_us > 0 "
                                "AND expire_time_us <= $1 + ttl_us - ttl_us / ",
                                kRecordedShareOfTtl),
                   {absl::ToUnixMicros(now)}));
  return NamesIn(rows);
}

absl::StatusOr<bool> VersionExpiry::AnyExpired(absl::Time now) {
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session_.Run(absl::StrCat("SELECT 1 FROM versions WHERE ", kIsExpired, " LIMIT 1"),
                   {absl::ToUnixMicros(now)}));
  return !rows.empty();
}

absl::StatusOr<std::vector<VersionName>> VersionExpiry::TakeExpired(absl::Time now, int64_t limit) {
  // The update locks the rows, in databases that have row locks, because uses are recorded
  // concurrently with other writers (SqlDatabase::WriteAside). The UPDATE repeats the condition of
  // its SELECT, to check again rows that another transaction has just changed.
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session_.Run(
          absl::StrCat("UPDATE versions SET expire_time_us = expire_time_us WHERE ", kIsExpired,
                       " AND (mapping, number) IN (SELECT mapping, number FROM versions "
                       "WHERE ",
                       kIsExpired, " ORDER BY mapping, number LIMIT $2) ",
                       "RETURNING mapping, number"),
          {absl::ToUnixMicros(now), limit}));
  return NamesIn(rows);
}

}  // namespace phimap
