#include "server/admission/principal.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/status/error.h"

namespace phimap {

absl::Status Principal::Check() const {
  if (revoked.load(std::memory_order_relaxed)) {
    return MakeError(absl::StatusCode::kUnauthenticated, reason::kTokenRevoked, "",
                     "the token was taken out of this server's file, or its rights were changed; "
                     "call again with the token that is in force");
  }
  if (until != absl::InfiniteFuture() && absl::Now() >= until) {
    return MakeError(absl::StatusCode::kUnauthenticated, reason::kTokenExpired, "",
                     absl::StrCat("the token was valid until ",
                                  absl::FormatTime(absl::RFC3339_sec, until, absl::UTCTimeZone()),
                                  "; ask the operator for a new one"));
  }
  return absl::OkStatus();
}

std::optional<Role> Principal::RoleOn(absl::string_view mapping) const {
  if (names.empty()) return role;
  for (const NameRight& right : names) {
    if (MatchesPattern(mapping, right.pattern)) return right.role;
  }
  return std::nullopt;
}

absl::Status Principal::Spend(Rated kind, int64_t count, absl::Time now) const {
  return spent == nullptr ? absl::OkStatus() : spent->Take(kind, count, now);
}

std::string Principal::NamesText() const {
  if (names.empty()) return "*";
  return absl::StrJoin(names, ", ", [this](std::string* out, const NameRight& right) {
    absl::StrAppend(out, right.pattern);
    if (right.role != role) absl::StrAppend(out, " (", RoleName(right.role), ")");
  });
}

const CallerCounters& CountersOf(CallerSeries& series, const Principal& principal) {
  const CallerCounters* counters = principal.counters.load(std::memory_order_acquire);
  if (counters == nullptr) {
    counters = &series.Of(principal.name);
    principal.counters.store(counters, std::memory_order_release);
  }
  return *counters;
}

bool MatchesPattern(absl::string_view name, absl::string_view pattern) {
  // Where the last "*" may still take one more character: behind it in the pattern, and in the
  // name.
  size_t star = absl::string_view::npos;
  size_t taken = 0;
  size_t p = 0;
  size_t n = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != absl::string_view::npos) {
      p = star;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace phimap
