// Whom a token, a client certificate or a user of the Unix socket stands for, and what this caller
// may do.
#ifndef PHIMAP_SERVER_ADMISSION_PRINCIPAL_H_
#define PHIMAP_SERVER_ADMISSION_PRINCIPAL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/admission/caller_rates.h"
#include "server/admission/role.h"
#include "server/observe/caller_series.h"

namespace phimap {

// A role on the mappings whose names match a pattern.
struct NameRight {
  // A name, in which "*" stands for any number of characters.
  std::string pattern;
  Role role = Role::kReader;

  friend bool operator==(const NameRight& a, const NameRight& b) = default;
};

// How much of the store the versions of a caller may take. Checked in the transaction that adds a
// version.
struct StoreShare {
  std::optional<int64_t> versions;
  std::optional<int64_t> bytes;

  friend bool operator==(const StoreShare& a, const StoreShare& b) = default;
};

// What the file says of a caller.
struct PrincipalFacts {
  // What the log and the audit call the caller; "" if the line has no name.
  std::string name;
  // The highest role that the caller has on any name.
  Role role = Role::kReader;
  // The names that the caller may know of. Empty: all, with `role`.
  std::vector<NameRight> names;
  // Whether the caller may take artifacts away, which hold rows that they were built from.
  bool exports = true;
  RateLimits rates;
  StoreShare stored;
  // From this moment on the caller is refused.
  absl::Time until = absl::InfiniteFuture();

  friend bool operator==(const PrincipalFacts& a, const PrincipalFacts& b) = default;
};

// Thread-safe: only `counters` and `revoked` change.
struct Principal : PrincipalFacts {
  // By what its calls are counted together: all lines of a name have one. "" without a name.
  std::string share_key;
  // Shared by all lines of a name. Null if nothing is limited.
  std::shared_ptr<CallerRates> spent;
  // What is counted of the name, once its first call has ended.
  mutable std::atomic<const CallerCounters*> counters{nullptr};
  // Becomes true when the file says this of the caller no longer.
  std::atomic<bool> revoked{false};

  // OK while the caller is admitted. UNAUTHENTICATED: TOKEN_EXPIRED, TOKEN_REVOKED.
  absl::Status Check() const;
  // Returns the caller's role on the mapping `mapping`; nullopt if it may not know that it exists.
  // The first pattern that matches counts.
  std::optional<Role> RoleOn(absl::string_view mapping) const;
  // Takes `count` of what the caller may send by rate (CallerRates::Take).
  absl::Status Spend(Rated kind, int64_t count, absl::Time now) const;
  // The patterns, for messages: "fraud-*, shared-* (reader)".
  std::string NamesText() const;
};

// Null for a caller of whom nothing is known and who may do everything its role allows, as on a
// server that asks for no tokens.
using PrincipalPointer = std::shared_ptr<const Principal>;

// Returns what is counted of the caller.
const CallerCounters& CountersOf(CallerSeries& series, const Principal& principal);

// Returns whether `name` matches `pattern`, in which "*" stands for any number of characters.
// Linear in the length of the name for each "*".
bool MatchesPattern(absl::string_view name, absl::string_view pattern);

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMISSION_PRINCIPAL_H_
