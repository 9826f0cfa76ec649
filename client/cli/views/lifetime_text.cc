#include "client/cli/views/lifetime_text.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/arguments/duration_argument.h"

namespace phimap::cli {

std::string LifetimeText(const v1::Version& version) {
  if (!version.has_ttl()) return "for ever";
  const absl::Duration ttl =
      absl::Seconds(version.ttl().seconds()) + absl::Nanoseconds(version.ttl().nanos());
  const std::string length = absl::StrCat(DurationArgumentText(ttl), " after its last use");
  if (!version.has_expire_time()) return absl::StrCat(length, ", and while an alias points to it");
  return absl::StrCat(
      length, ", so far until ",
      absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromUnixSeconds(version.expire_time().seconds()),
                       absl::UTCTimeZone()));
}

}  // namespace phimap::cli
